"""How plans are carried out, and which keys come first."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from trainwright.api.kinds import CONFIG_MAP
from trainwright.base.errors import Conflict
from trainwright.base.objects import Object, name_of
from trainwright.controllers.reconciler import ControllerLoop, Outcome, Watch, carry_out
from trainwright.core.plan import Create, Delete, Plan, build_delete
from trainwright.machinery.api import PatchType, WatchType
from trainwright.machinery.clock import SystemClock
from trainwright.machinery.events import EventRecorder
from trainwright.server.inprocess import InProcessApi
from trainwright.server.registry import Registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from trainwright.machinery.api import Handler
    from trainwright.machinery.workqueue import Key


def make_map(name: str, **metadata: Any) -> Object:
    metadata |= {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[InProcessApi]:
    registry = await Registry.open(tmp_path, SystemClock())
    yield InProcessApi(registry)
    await registry.close()


async def change(api: InProcessApi, name: str) -> Object:
    patch = {"metadata": {"labels": {"changed": "yes"}}}
    return await api.patch(
        CONFIG_MAP, "default", name, patch, type=PatchType.MERGE, field_manager="other"
    )


async def test_a_delete_of_what_was_seen_fails_when_it_has_changed(api: InProcessApi) -> None:
    seen = await api.create(CONFIG_MAP, make_map("x"), field_manager="test")
    changed = await change(api, "x")
    with pytest.raises(Conflict):
        await carry_out(build_delete(CONFIG_MAP, seen, as_seen=True), api, "test")
    await carry_out(build_delete(CONFIG_MAP, changed, as_seen=True), api, "test")
    assert (await api.list(CONFIG_MAP, "default")).items == []


async def test_a_delete_spares_another_object_of_the_name(api: InProcessApi) -> None:
    seen = await api.create(CONFIG_MAP, make_map("x"), field_manager="test")
    await api.delete(CONFIG_MAP, "default", "x")
    other = await api.create(CONFIG_MAP, make_map("x"), field_manager="test")
    assert await carry_out(build_delete(CONFIG_MAP, seen), api, "test") == {}
    assert await api.get(CONFIG_MAP, "default", "x") == other


class ToyLister:
    """Tells what a test says."""

    def __init__(self, *there: Object) -> None:
        self.there = there
        self.handlers: list[Handler] = []

    def subscribe(self, _kind: Any, handler: Handler) -> None:
        self.handlers.append(handler)
        for obj in self.there:
            handler(WatchType.ADDED, None, obj)

    def tell(self, change: WatchType, obj: Object, old: Object | None = None) -> None:
        for handler in self.handlers:
            handler(change, old, obj)


class Recorder:
    """A controller that notes its keys, and carries one plan out."""

    name = manager = "recorder"

    def __init__(self, plan: Plan | None = None) -> None:
        self.plan = plan
        self.seen: list[str] = []
        self.changes: list[WatchType] = []
        self.done = asyncio.Event()

    def watches(self) -> Sequence[Watch]:
        return (Watch(CONFIG_MAP, self._map),)

    def _map(self, change: WatchType, _old: Object | None, new: Object) -> list[Key]:
        from trainwright.machinery.workqueue import Key

        self.changes.append(change)
        return [Key("default", name_of(new))]

    async def reconcile(self, key: Key) -> Outcome | None:
        self.seen.append(key.name)
        if key.name == "last":
            self.done.set()
        return Outcome(make_map(key.name), self.plan) if self.plan else None


def make_loop(
    api: InProcessApi, lister: ToyLister, controller: Recorder, written: list[Object] | None = None
) -> ControllerLoop:
    clock = SystemClock()

    def observe(_kind: Any, obj: Object) -> None:
        if written is not None:
            written.append(obj)

    return ControllerLoop(
        controller,
        api=api,
        lister=lister,  # type: ignore[arg-type]  # the part of Lister that a loop uses
        clock=clock,
        events=EventRecorder(api, clock, instance="test", new_suffix=lambda: "x"),
        observe_write=observe,
    )


async def run_until_done(loop: ControllerLoop, controller: Recorder) -> None:
    task = asyncio.create_task(loop.run())
    async with asyncio.timeout(60):
        await controller.done.wait()
    loop.close()
    with suppress(asyncio.CancelledError):
        await task


async def test_changes_go_before_what_was_there_or_is_told_again(api: InProcessApi) -> None:
    lister = ToyLister(make_map("there"), make_map("last"))
    controller = Recorder()
    loop = make_loop(api, lister, controller)
    loop.follow()
    lister.tell(WatchType.SYNC, make_map("listed"))
    lister.tell(WatchType.SYNC, make_map("there"), make_map("there"))
    lister.tell(WatchType.MODIFIED, make_map("changed"))
    lister.tell(WatchType.MODIFIED, make_map("listed"))
    await run_until_done(loop, controller)
    assert controller.seen == ["changed", "listed", "there", "last"]
    assert WatchType.SYNC not in controller.changes
    assert controller.changes[2:4] == [WatchType.ADDED, WatchType.MODIFIED]


async def test_answers_to_writes_are_shown_to_the_lister_but_not_those_of_what_is_gone(
    api: InProcessApi,
) -> None:
    gone = await api.create(CONFIG_MAP, make_map("gone"), field_manager="test")
    held = await api.create(CONFIG_MAP, make_map("held", finalizers=["a/b"]), field_manager="test")
    actions = (
        Create(kind=CONFIG_MAP, obj=make_map("made")),
        Delete(kind=CONFIG_MAP, namespace="default", name="gone", uid=gone["metadata"]["uid"]),
        build_delete(CONFIG_MAP, held),
    )
    written: list[Object] = []
    controller = Recorder(Plan(actions=actions))
    lister = ToyLister(make_map("last"))
    await run_until_done(make_loop(api, lister, controller, written), controller)
    assert [name_of(obj) for obj in written] == ["made", "held"]
