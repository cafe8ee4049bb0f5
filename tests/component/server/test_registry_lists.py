from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.component.server.registries import make_config_map, make_pod, open_registry
from trainwright.api import kinds
from trainwright.base.errors import BadRequest, Gone, Invalid, Timeout
from trainwright.server.inprocess import InProcessApi
from trainwright.server.requests import ListOptions
from trainwright.server.watchhub import History

if TYPE_CHECKING:
    from pathlib import Path

    from trainwright.server.registry import Registry
    from trainwright.server.stored import StoredPage


def list_maps(registry: Registry, namespace: str = "default", **options: object) -> StoredPage:
    return registry.list(kinds.CONFIG_MAP, namespace, ListOptions(**options))  # type: ignore[arg-type]


def names(page: StoredPage) -> list[str]:
    return [stored.name for stored in page.items]


async def create_maps(api: InProcessApi, *wanted: str) -> None:
    for name in wanted:
        obj = make_config_map(name)
        obj["metadata"]["labels"] = {"first": name[0]}
        await api.create(kinds.CONFIG_MAP, obj, field_manager="m")


async def test_pages_show_one_moment(registry: Registry, api: InProcessApi) -> None:
    await create_maps(api, "e", "a", "c", "b", "d")
    first = list_maps(registry, limit=2)
    assert (names(first), first.remaining) == (["a", "b"], 3)
    await api.delete(kinds.CONFIG_MAP, "default", "d")
    await create_maps(api, "cc")
    rest = list_maps(registry, limit=2, continue_token=first.continue_token)
    assert (names(rest), rest.resource_version) == (["c", "d"], first.resource_version)
    last = list_maps(registry, limit=2, continue_token=rest.continue_token)
    assert (names(last), last.continue_token, last.remaining) == (["e"], "", None)
    assert names(list_maps(registry)) == ["a", "b", "c", "cc", "e"]
    exact = list_maps(
        registry, resource_version=first.resource_version, resource_version_match="Exact"
    )
    assert names(exact) == ["a", "b", "c", "d", "e"]


async def test_forgotten_token_offers_to_go_on_at_the_newest_state(tmp_path: Path) -> None:
    registry = await open_registry(tmp_path / "data", history=None)
    await registry.close()
    registry = await open_registry(tmp_path / "data", history=History(0, max_changes=1))
    try:
        api = InProcessApi(registry)
        await create_maps(api, "a", "b", "c")
        first = list_maps(registry, limit=1)
        await create_maps(api, "d", "e")
        with pytest.raises(Gone) as refused:
            list_maps(registry, limit=1, continue_token=first.continue_token)
        status = refused.value.to_status()
        assert status["reason"] == "Expired"
        again = list_maps(registry, continue_token=status["metadata"]["continue"])
        assert names(again) == ["b", "c", "d", "e"]
    finally:
        await registry.close()


async def test_selectors(registry: Registry, api: InProcessApi) -> None:
    await create_maps(api, "a1", "b1", "b2")
    assert names(list_maps(registry, label_selector="first=b")) == ["b1", "b2"]
    assert names(list_maps(registry, label_selector="first in (a,c),first")) == ["a1"]
    assert names(list_maps(registry, label_selector="!other")) == ["a1", "b1", "b2"]
    assert names(list_maps(registry, field_selector="metadata.name=b2")) == ["b2"]
    assert names(list_maps(registry, field_selector="metadata.name!=b2")) == ["a1", "b1"]
    with pytest.raises(BadRequest):
        list_maps(registry, field_selector="data.x=1")
    with pytest.raises(BadRequest):
        list_maps(registry, label_selector="a in (")
    for name, node in (("p", "laptop"), ("q", "other")):
        await api.create(kinds.POD, make_pod(name, nodeName=node), field_manager="m")
    page = registry.list(kinds.POD, "", ListOptions(field_selector="spec.nodeName=laptop"))
    assert names(page) == ["p"]
    page = registry.list(
        kinds.POD,
        "default",
        ListOptions(field_selector="status.phase=Pending,spec.nodeName!=other"),
    )
    assert names(page) == ["p"]


async def test_combinations_without_meaning_are_refused(registry: Registry) -> None:
    for options in (
        {"resource_version_match": "Exact"},
        {"resource_version_match": "Exact", "resource_version": "0"},
        {"resource_version_match": "Sometimes", "resource_version": "1"},
    ):
        with pytest.raises(Invalid):
            list_maps(registry, **options)
    with pytest.raises(BadRequest):
        list_maps(registry, continue_token="nonsense")
    with pytest.raises(BadRequest):
        list_maps(registry, resource_version="abc")


async def test_future_revision_is_waited_for_and_then_refused(
    registry: Registry, api: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    soon = str(int(registry.resource_version) + 1)
    waiting = asyncio.ensure_future(registry.wait_for_revision(soon))
    await create_maps(api, "a")
    await waiting
    monkeypatch.setattr("trainwright.server.registry_reads._FUTURE_WAIT_S", 0.01)
    with pytest.raises(Timeout) as refused:
        await registry.wait_for_revision("999999")
    assert refused.value.details["causes"][0]["reason"] == "ResourceVersionTooLarge"
    with pytest.raises(Timeout):
        list_maps(registry, resource_version="999999")
