"""What informers show of a real server, whatever becomes of their connections."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.component.machinery.conftest import QUICK, eventually, running_bench
from tests.serving import running_server
from trainwright.api.kinds import (
    CLUSTER_TRAINING_RUNTIME,
    CONFIG_MAP,
    JOBSET,
    NAMESPACE,
    POD,
    TRAINJOB,
)
from trainwright.base.objects import Object, dig, name_of, resource_version_of, uid_of
from trainwright.core.runtimes import load_shipped_runtimes
from trainwright.machinery.api import DeleteOptions, PatchType, WatchType

if TYPE_CHECKING:
    from pathlib import Path

    from tests.component.machinery.conftest import Bench
    from trainwright.machinery.informer import InformerSet


def make_map(name: str, namespace: str = "default", **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "data": {"text": "x" * 100},
    }


def make_namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


async def create(bench: Bench, obj: Object) -> Object:
    kind = {"ConfigMap": CONFIG_MAP, "Namespace": NAMESPACE, "JobSet": JOBSET}[obj["kind"]]
    return await bench.api.create(kind, obj, field_manager="test")


async def label(bench: Bench, name: str, value: str) -> Object:
    patch = {"metadata": {"labels": {"value": value}}}
    return await bench.api.patch(
        CONFIG_MAP, "default", name, patch, type=PatchType.MERGE, field_manager="test"
    )


async def settle(bench: Bench, informers: InformerSet) -> None:
    """Wait until the informers show what the server has, to the last resourceVersion."""
    live = await bench.api.list_all(CONFIG_MAP)
    wanted = {(uid_of(obj), resource_version_of(obj)) for obj in live}

    def shown() -> set[tuple[str, str]]:
        return {(uid_of(o), resource_version_of(o)) for o in informers.list(CONFIG_MAP)}

    await eventually(lambda: shown() == wanted)


@pytest.mark.parametrize("watch_list", [True, False], ids=["by watch", "by pages"])
async def test_everything_is_there_after_the_first_sync_and_changes_follow(
    bench: Bench, watch_list: bool
) -> None:
    for number in range(7):
        await create(bench, make_map(f"map-{number}"))
    informers = await bench.start(CONFIG_MAP, reading=replace(QUICK, page=2, watch_list=watch_list))
    told: list[tuple[WatchType, str]] = []

    def hear(change: WatchType, _old: Object | None, new: Object) -> None:
        told.append((change, name_of(new)))

    informers.subscribe(CONFIG_MAP, hear)
    first = {name for change, name in told if change is WatchType.SYNC}
    assert {f"map-{number}" for number in range(7)} <= first
    told.clear()
    await create(bench, make_map("later"))
    await label(bench, "map-1", "new")
    await bench.api.delete(CONFIG_MAP, "default", "map-2")
    await eventually(lambda: len(told) == 3)
    assert told == [
        (WatchType.ADDED, "later"),
        (WatchType.MODIFIED, "map-1"),
        (WatchType.DELETED, "map-2"),
    ]
    await settle(bench, informers)
    assert [name_of(o) for o in informers.list(CONFIG_MAP, labels={"value": "new"})] == ["map-1"]


async def test_config_maps_are_kept_as_metadata_and_jobsets_without_their_spec(
    bench: Bench,
) -> None:
    owner = await create(bench, make_map("owner"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid_of(owner)}
    await create(bench, make_map("owned", ownerReferences=[reference]))
    job = {
        "template": {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}}
    }
    await create(
        bench,
        {
            "apiVersion": JOBSET.api_version,
            "kind": "JobSet",
            "metadata": {"name": "js", "namespace": "default"},
            "spec": {"suspend": True, "replicatedJobs": [{"name": "n", **job}]},
        },
    )
    informers = await bench.start(CONFIG_MAP, JOBSET)
    (owned,) = informers.list(CONFIG_MAP, "default", owner_uid=uid_of(owner))
    assert (owned["apiVersion"], owned["kind"], name_of(owned)) == ("v1", "ConfigMap", "owned")
    assert set(owned) == {"apiVersion", "kind", "metadata"}
    assert "managedFields" not in owned["metadata"]
    jobset = informers.get(JOBSET, "default", "js")
    assert dig(jobset, "spec") == {"suspend": True}


async def test_only_the_namespaces_asked_for_are_seen(bench: Bench) -> None:
    for name in ("one", "two", "three"):
        await create(bench, make_namespace(name))
        await create(bench, make_map("mine", name))
    informers = await bench.start(CONFIG_MAP, NAMESPACE, namespaces=["one", "two"])
    seen = {o["metadata"]["namespace"] for o in informers.list(CONFIG_MAP)}
    assert seen == {"one", "two"}
    await create(bench, make_map("later", "three"))
    await create(bench, make_map("later", "two"))
    await eventually(lambda: informers.get(CONFIG_MAP, "two", "later"))
    assert informers.get(CONFIG_MAP, "three", "later") is None
    assert informers.get(NAMESPACE, "", "three") is not None


async def test_a_kind_that_was_not_declared_is_no_empty_kind(bench: Bench) -> None:
    informers = await bench.start(CONFIG_MAP)
    with pytest.raises(RuntimeError, match="pods was read from informers but not declared"):
        informers.get(POD, "default", "any")


async def test_nothing_is_missed_when_connections_are_cut_all_the_time(bench: Bench) -> None:
    informers = await bench.start(CONFIG_MAP)
    for number in range(60):
        await create(bench, make_map(f"map-{number}"))
        if number % 2:
            await label(bench, f"map-{number}", str(number))
        if number % 3 == 0:
            await bench.api.delete(CONFIG_MAP, "default", f"map-{number}")
        if number % 4 == 0:
            bench.gate.cut()
            await asyncio.sleep(0)
    await settle(bench, informers)


async def test_a_half_open_connection_is_given_up(bench: Bench) -> None:
    informers = await bench.start(CONFIG_MAP, reading=replace(QUICK, silence_s=1.0))
    before = bench.gate.connections
    bench.gate.open.clear()
    await create(bench, make_map("unseen"))
    await eventually(lambda: bench.gate.connections > before)
    assert informers.get(CONFIG_MAP, "default", "unseen") is None
    bench.gate.open.set()
    await eventually(lambda: informers.get(CONFIG_MAP, "default", "unseen"))


async def test_a_watch_from_too_long_ago_lists_again(bench: Bench) -> None:
    await create(bench, make_map("going"))
    informers = await bench.start(CONFIG_MAP)
    told: list[tuple[WatchType, str]] = []

    def hear(change: WatchType, _old: Object | None, new: Object) -> None:
        told.append((change, name_of(new)))

    bench.gate.open.clear()
    bench.gate.cut()
    informers.subscribe(CONFIG_MAP, hear)
    told.clear()
    await bench.api.delete(CONFIG_MAP, "default", "going")
    await create(bench, make_map("coming"))
    history = bench.server.registry._hub.history
    history._changes.clear()
    history.floor = bench.server.registry._hub.revision
    bench.gate.open.set()
    await settle(bench, informers)
    assert sorted(told) == [(WatchType.ADDED, "coming"), (WatchType.DELETED, "going")]


async def test_own_writes_are_seen_at_once_and_never_come_back_from_the_dead(
    bench: Bench,
) -> None:
    informers = await bench.start(CONFIG_MAP)
    bench.gate.open.clear()
    written = await create(bench, make_map("mine"))
    informers.observe_write(CONFIG_MAP, written)
    assert informers.get(CONFIG_MAP, "default", "mine") is not None
    changed = await label(bench, "mine", "new")
    informers.observe_write(CONFIG_MAP, changed)
    informers.observe_write(CONFIG_MAP, written)  # answers may come in any order
    seen = informers.get(CONFIG_MAP, "default", "mine")
    assert dig(seen, "metadata", "labels") == {"value": "new"}
    options = DeleteOptions(uid=uid_of(written))
    await bench.api.delete(CONFIG_MAP, "default", "mine", options)
    bench.gate.open.set()
    await eventually(lambda: informers.get(CONFIG_MAP, "default", "mine") is None)
    informers.observe_write(CONFIG_MAP, changed)  # late: the watch has shown the end already
    assert informers.get(CONFIG_MAP, "default", "mine") is None
    informers.observe_write(CONFIG_MAP, {"kind": "Status", "status": "Success"})
    informers.observe_write(TRAINJOB, written)  # nobody reads that kind


async def test_unfinished_trainjobs_are_told_again_now_and_then(bench: Bench) -> None:
    def make(name: str) -> Object:
        return {
            "apiVersion": TRAINJOB.api_version,
            "kind": "TrainJob",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"runtimeRef": {"name": "plain-distributed"}, "suspend": True},
        }

    for runtime in load_shipped_runtimes():
        await bench.api.create(CLUSTER_TRAINING_RUNTIME, runtime, field_manager="test")
    for name in ("running", "done"):
        await bench.api.create(TRAINJOB, make(name), field_manager="test")
    done = {
        "type": "Complete",
        "status": "True",
        "reason": "Done",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    await bench.api.patch(
        TRAINJOB, "default", "done", {"status": {"conditions": [done]}},
        type=PatchType.MERGE, subresource="status", field_manager="test",
    )  # fmt: skip
    informers = await bench.start(TRAINJOB, resync_s=0.1, resync_tick_s=0.05)
    told: list[tuple[WatchType, str]] = []

    def hear(change: WatchType, old: Object | None, new: Object) -> None:
        if old is not None:
            told.append((change, name_of(new)))

    informers.subscribe(TRAINJOB, hear)
    await eventually(lambda: len(told) >= 3)
    assert set(told) == {(WatchType.SYNC, "running")}


async def test_informers_outlive_a_restart_of_the_server(tmp_path: Path) -> None:
    async with running_bench(tmp_path) as first:
        await create(first, make_map("kept"))
        await create(first, make_map("going"))
        informers = await first.start(CONFIG_MAP)
        gate, registry = first.gate, first.server.registry
        gate.open.clear()
        await first.server.stop()
        await registry.close()
        gate.cut()
        async with running_server(tmp_path) as second:
            api = await first.reach(second)
            await api.delete(CONFIG_MAP, "default", "going")
            await api.create(CONFIG_MAP, make_map("coming"), field_manager="test")
            gate.target = urlsplit(second.url).port or 0
            gate.open.set()
            await eventually(lambda: informers.get(CONFIG_MAP, "default", "coming"))
            await eventually(lambda: informers.get(CONFIG_MAP, "default", "going") is None)
            assert informers.get(CONFIG_MAP, "default", "kept") is not None
