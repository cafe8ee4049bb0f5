"""Applying to an object that was seen before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.component.server.registries import make_config_map, open_registry
from trainwright.api.kinds import CONFIG_MAP
from trainwright.base.errors import Conflict, Invalid
from trainwright.base.objects import Object, uid_of
from trainwright.machinery.api import PatchType
from trainwright.machinery.apply import apply_object, other_object_as_conflict
from trainwright.server.inprocess import InProcessApi

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[InProcessApi]:
    registry = await open_registry(tmp_path / "data")
    yield InProcessApi(registry)
    await registry.close()


def seen_as(uid: str) -> Object:
    obj = make_config_map("a", x="2")
    obj["metadata"]["uid"] = uid
    return obj


async def test_another_object_of_the_name_is_a_conflict(api: InProcessApi) -> None:
    made = await api.create(CONFIG_MAP, make_config_map("a", x="1"), field_manager="m")
    with pytest.raises(Conflict):
        await apply_object(api, CONFIG_MAP, seen_as("earlier"), "m")
    written = await apply_object(api, CONFIG_MAP, seen_as(uid_of(made)), "m")
    assert written["data"] == {"x": "2"}
    await api.delete(CONFIG_MAP, "default", "a")
    with pytest.raises(Conflict):
        await apply_object(api, CONFIG_MAP, seen_as(uid_of(made)), "m")


async def test_other_faults_stay_what_they_are(api: InProcessApi) -> None:
    with pytest.raises(Invalid):
        await apply_object(api, CONFIG_MAP, make_config_map("Not Valid"), "m")


async def test_a_patch_that_is_meant_for_an_earlier_object_is_a_conflict(api: InProcessApi) -> None:
    made = await api.create(CONFIG_MAP, make_config_map("a", x="1"), field_manager="m")
    stale = {"uid": "earlier", "resourceVersion": "1"}
    for metadata in ({"uid": "earlier"}, stale):
        with pytest.raises(Conflict), other_object_as_conflict():
            await api.patch(
                CONFIG_MAP,
                "default",
                "a",
                {"metadata": metadata, "data": {"x": "2"}},
                type=PatchType.MERGE,
                field_manager="m",
            )
    assert (await api.get(CONFIG_MAP, "default", "a"))["data"] == made["data"]
