from __future__ import annotations

import asyncio
import contextlib
import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.component.server.registries import make_config_map, open_registry
from trainwright.api import kinds
from trainwright.base.errors import AlreadyExists, Gone, Invalid, NotFound
from trainwright.machinery.api import PatchType
from trainwright.server import watchhub
from trainwright.server.inprocess import InProcessApi
from trainwright.server.requests import WatchOptions
from trainwright.server.watchhub import History

if TYPE_CHECKING:
    from pathlib import Path

    from trainwright.base.objects import Object
    from trainwright.server.registry import Registry, Watch


class Reader:
    """Reads a watch event by event."""

    def __init__(self, watch: Watch) -> None:
        self._batches = watch.batches()
        self._events: list[tuple[str, Object]] = []

    async def next(self) -> tuple[str, Object]:
        async with asyncio.timeout(60):
            while not self._events:
                batch = await anext(self._batches)
                self._events += [(str(e.type), json.loads(e.data)) for e in batch]
        return self._events.pop(0)

    async def names(self, count: int) -> list[tuple[str, str]]:
        found = [await self.next() for _ in range(count)]
        return [(kind, obj["metadata"]["name"]) for kind, obj in found]


def watch(registry: Registry, **options: Any) -> Watch:
    return registry.watch(kinds.CONFIG_MAP, "default", WatchOptions(**options))


async def create(api: InProcessApi, name: str, **labels: str) -> Object:
    obj = make_config_map(name)
    obj["metadata"]["labels"] = labels
    return await api.create(kinds.CONFIG_MAP, obj, field_manager="m")


async def label(api: InProcessApi, name: str, **labels: str | None) -> Object:
    body = {"metadata": {"labels": labels}}
    return await api.patch(
        kinds.CONFIG_MAP, "default", name, body, type=PatchType.MERGE, field_manager="m"
    )


async def test_watch_starts_with_what_is_there_and_goes_on(
    registry: Registry, api: InProcessApi
) -> None:
    await create(api, "a")
    reader = Reader(watch(registry))
    await create(api, "b")
    await label(api, "a", x="1")
    gone = await api.delete(kinds.CONFIG_MAP, "default", "b")
    assert await reader.names(3) == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a")]
    kind, last = await reader.next()
    assert (kind, last) == ("DELETED", gone)
    assert last["metadata"]["resourceVersion"] == registry.resource_version


async def test_watch_resumes_after_a_resource_version(
    registry: Registry, api: InProcessApi
) -> None:
    first = await create(api, "a")
    await create(api, "b")
    reader = Reader(watch(registry, resource_version=first["metadata"]["resourceVersion"]))
    await create(api, "c")
    assert await reader.names(2) == [("ADDED", "b"), ("ADDED", "c")]


async def test_forgotten_resource_version_is_gone(tmp_path: Path) -> None:
    registry = await open_registry(tmp_path / "data", history=History(0, max_changes=2))
    try:
        api = InProcessApi(registry)
        first = await create(api, "a")
        for name in ("b", "c", "d"):
            await create(api, name)
        with pytest.raises(Gone, match="too old resource version"):
            watch(registry, resource_version=first["metadata"]["resourceVersion"])
    finally:
        await registry.close()


async def test_selector_turns_changes_into_added_and_deleted(
    registry: Registry, api: InProcessApi
) -> None:
    reader = Reader(watch(registry, label_selector="on"))
    await create(api, "a")
    await label(api, "a", on="1")
    await label(api, "a", on="2")
    off = await label(api, "a", on=None)
    await api.delete(kinds.CONFIG_MAP, "default", "a")
    await create(api, "end", on="1")
    assert await reader.names(2) == [("ADDED", "a"), ("MODIFIED", "a")]
    kind, shown = await reader.next()
    assert (kind, shown["metadata"]["labels"]) == ("DELETED", {"on": "2"})
    assert shown["metadata"]["resourceVersion"] == off["metadata"]["resourceVersion"]
    assert await reader.names(1) == [("ADDED", "end")]


async def test_initial_events_end_with_their_bookmark(
    registry: Registry, api: InProcessApi
) -> None:
    await create(api, "a")
    reader = Reader(
        watch(
            registry,
            send_initial_events=True,
            resource_version_match="NotOlderThan",
            allow_bookmarks=True,
        )
    )
    assert await reader.names(1) == [("ADDED", "a")]
    kind, bookmark = await reader.next()
    assert (kind, bookmark["kind"]) == ("BOOKMARK", "ConfigMap")
    assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert bookmark["metadata"]["resourceVersion"] == registry.resource_version
    with pytest.raises(Invalid, match="sendInitialEvents requires"):
        watch(registry, send_initial_events=True)


async def test_bookmarks_come_while_nothing_happens(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchhub, "BOOKMARK_INTERVAL_S", 0.01)
    reader = Reader(watch(registry, allow_bookmarks=True))
    kind, bookmark = await reader.next()
    assert kind == "BOOKMARK"
    assert bookmark["metadata"]["resourceVersion"] == registry.resource_version


async def test_watch_ends_at_its_limit_and_when_closed(registry: Registry) -> None:
    limited = watch(registry, timeout_s=0.01)
    assert [batch async for batch in limited.batches()] == []
    closed = watch(registry)
    reading = asyncio.ensure_future(anext(closed.batches(), None))
    await asyncio.sleep(0)
    closed.close()
    assert await reading is None


async def test_slow_reader_is_let_go(
    registry: Registry, api: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchhub, "MAX_BACKLOG", 3)
    slow = watch(registry)
    for number in range(6):
        await create(api, f"c{number}")
    seen = [event.type async for batch in slow.batches() for event in batch]
    assert len(seen) == 3


async def test_events_follow_the_order_of_commits(registry: Registry, api: InProcessApi) -> None:
    reader = Reader(watch(registry))
    await asyncio.gather(*(create(api, f"c{number}") for number in range(50)))
    revisions = [int((await reader.next())[1]["metadata"]["resourceVersion"]) for _ in range(50)]
    assert revisions == sorted(revisions)


async def test_failing_listener_keeps_nobody_waiting(
    registry: Registry, api: InProcessApi, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[str] = []

    def fail(change: object) -> None:
        raise RuntimeError("broken listener")

    registry.subscribe(kinds.CONFIG_MAP, fail)
    registry.subscribe(kinds.CONFIG_MAP, lambda change: heard.append(change.now.name))
    await create(api, "a")
    assert heard == ["a"]
    assert "listener failed" in caplog.text


@pytest.mark.parametrize("selector", ["", "color=red", "color!=red,size"])
async def test_replayed_watch_equals_the_list(
    registry: Registry, api: InProcessApi, selector: str
) -> None:
    reading = watch(registry, label_selector=selector)
    chance = random.Random(7)

    async def write(worker: int) -> None:
        for _ in range(40):
            name = f"c{chance.randrange(8)}"
            wanted = {"color": chance.choice(["red", "blue"]), "size": chance.choice([None, "1"])}
            with contextlib.suppress(AlreadyExists, NotFound):
                match chance.randrange(3):
                    case 0:
                        await create(api, name, color=str(wanted["color"]))
                    case 1:
                        await label(api, name, **wanted)
                    case _:
                        await api.delete(kinds.CONFIG_MAP, "default", name)

    await asyncio.gather(*(write(worker) for worker in range(6)))
    page = await api.list(kinds.CONFIG_MAP, "default", label_selector=selector)
    reading.close()
    replayed: dict[str, Object] = {}
    async for batch in reading.batches():
        for event in batch:
            obj = json.loads(event.data)
            name = obj["metadata"]["name"]
            if event.type == "DELETED":
                del replayed[name]
            else:
                assert (event.type == "ADDED") == (name not in replayed)
                replayed[name] = obj
    assert [replayed[name] for name in sorted(replayed)] == list(page.items)
