from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.component.server.registries import make_config_map, make_pod
from trainwright.api import kinds
from trainwright.api.wellknown import JOBSET_NAME_LABEL
from trainwright.base.errors import NotFound
from trainwright.base.objects import name_of
from trainwright.machinery.api import Api, Lister, PatchType, WatchType
from trainwright.server.inprocess import InProcessApi, StoreLister

if TYPE_CHECKING:
    from trainwright.base.objects import Object
    from trainwright.server.registry import Registry


async def test_both_doors_keep_their_protocols(registry: Registry) -> None:
    api: Api = InProcessApi(registry)
    lister: Lister = StoreLister(registry)
    with pytest.raises(NotFound):
        await api.get(kinds.POD, "default", "p")
    assert lister.get(kinds.POD, "default", "p") is None


async def test_what_is_given_and_returned_is_the_callers_own(api: InProcessApi) -> None:
    given = make_config_map("a", x="1")
    made = await api.create(kinds.CONFIG_MAP, given, field_manager="m")
    assert given == make_config_map("a", x="1")
    made["data"]["x"] = "changed"
    given["data"]["x"] = "changed"
    assert (await api.get(kinds.CONFIG_MAP, "default", "a"))["data"] == {"x": "1"}


async def test_lister_reads_its_own_writes_and_shares_objects(
    registry: Registry, api: InProcessApi
) -> None:
    lister = StoreLister(registry)
    made = await api.create(kinds.CONFIG_MAP, make_config_map("a"), field_manager="m")
    seen = lister.get(kinds.CONFIG_MAP, "default", "a")
    assert seen == made
    assert lister.get(kinds.CONFIG_MAP, "default", "a") is seen


async def test_lister_finds_by_labels_and_owner(registry: Registry, api: InProcessApi) -> None:
    lister = StoreLister(registry)
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u-1"}
    for name, labels, owners in (
        ("a", {JOBSET_NAME_LABEL: "j"}, [owner]),
        ("b", {JOBSET_NAME_LABEL: "j", "x": "1"}, []),
        ("c", {"x": "1"}, [owner]),
    ):
        pod = make_pod(name)
        pod["metadata"] |= {"labels": labels, "ownerReferences": owners}
        await api.create(kinds.POD, pod, field_manager="m")

    def found(**wanted: object) -> list[str]:
        return sorted(name_of(pod) for pod in lister.list(kinds.POD, **wanted))  # type: ignore[arg-type]

    assert found(labels={JOBSET_NAME_LABEL: "j"}) == ["a", "b"]
    assert found(labels={JOBSET_NAME_LABEL: "j", "x": "1"}) == ["b"]
    assert found(owner_uid="u-1") == ["a", "c"]
    assert found(owner_uid="u-1", labels={"x": "1"}) == ["c"]
    assert found(namespace="other") == []
    relabel = {"metadata": {"labels": {JOBSET_NAME_LABEL: None}}}
    await api.patch(kinds.POD, "default", "a", relabel, type=PatchType.MERGE, field_manager="m")
    assert found(labels={JOBSET_NAME_LABEL: "j"}) == ["b"]


async def test_subscribers_hear_of_a_change_before_its_writer_is_answered(
    registry: Registry, api: InProcessApi
) -> None:
    await api.create(kinds.CONFIG_MAP, make_config_map("a", x="1"), field_manager="m")
    heard: list[tuple[str, Object | None, Object]] = []
    StoreLister(registry).subscribe(
        kinds.CONFIG_MAP, lambda kind, before, now: heard.append((str(kind), before, now))
    )
    assert [(kind, before) for kind, before, _ in heard] == [("ADDED", None)]
    patched = await api.patch(
        kinds.CONFIG_MAP,
        "default",
        "a",
        {"data": {"x": "2"}},
        type=PatchType.MERGE,
        field_manager="m",
    )
    kind, before, now = heard[-1]
    assert (kind, now) == ("MODIFIED", patched)
    assert before is not None
    assert before["data"] == {"x": "1"}
    await api.delete(kinds.CONFIG_MAP, "default", "a")
    assert heard[-1][0] == "DELETED"


async def test_watch_through_the_api(api: InProcessApi) -> None:
    events = api.watch(kinds.CONFIG_MAP, "default")
    await api.create(kinds.CONFIG_MAP, make_config_map("a"), field_manager="m")
    async with asyncio.timeout(60):
        event = await anext(events)
    assert (event.type, name_of(event.object)) == (WatchType.ADDED, "a")
    await events.aclose()  # type: ignore[attr-defined]
