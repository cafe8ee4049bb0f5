"""Who hears of which change: recent history, open watches, and what a selector makes of a change."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.base.errors import Gone
from trainwright.machinery.api import WatchType
from trainwright.server.requests import RawEvent
from trainwright.server.stored import build_stored

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from trainwright.server.store import Committed
    from trainwright.server.stored import Stored

HISTORY_CHANGES = 10_000
HISTORY_BYTES = 32 * 1024 * 1024
"""History keeps as many changes as fit into both limits."""
MAX_BACKLOG = 10_000
"""Changes that wait for one slow reader before its watch is ended."""
MAX_BATCH = 500
BOOKMARK_INTERVAL_S = 60.0
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class History:
    """The last changes of the whole server, oldest first."""

    def __init__(
        self, floor: int, *, max_changes: int = HISTORY_CHANGES, max_bytes: int = HISTORY_BYTES
    ) -> None:
        self.floor = floor
        """Every change after this revision is here; a watch from before it is Gone."""
        self._max_changes = max_changes
        self._max_bytes = max_bytes
        self._bytes = 0
        self._changes: deque[Committed] = deque()

    def add(self, change: Committed) -> None:
        """Remember the newest change, forgetting the oldest when there are too many."""
        self._changes.append(change)
        self._bytes += len(change.now.data)
        while len(self._changes) > self._max_changes or self._bytes > self._max_bytes:
            oldest = self._changes.popleft()
            self._bytes -= len(oldest.now.data)
            self.floor = oldest.now.revision

    def since(self, revision: int, resource: str) -> Sequence[Committed]:
        """The changes of one resource after `revision`, oldest first.

        Raises:
            Gone: when some of them are forgotten.
        """
        if revision < self.floor:
            raise Gone(f"too old resource version: {revision} ({self.floor})")
        found = []
        for change in reversed(self._changes):
            if change.now.revision <= revision:
                break
            if change.now.kind.resource == resource:
                found.append(change)
        found.reverse()
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What one watch wants to see."""

    resource: str
    namespace: str = ""
    matches: Callable[[Stored], bool] | None = None
    view: Callable[[Stored], Stored] | None = None
    """Turns an object into the version that the reader asked for."""

    def select(self, change: Committed) -> RawEvent | None:
        """The event that `change` is for this watch, if any."""
        now, before = change.now, change.before
        if self.namespace and now.namespace != self.namespace:
            return None
        event, shown = change.type, now
        if self.matches is not None:
            matched = before is not None and self.matches(before)
            matches = event is not WatchType.DELETED and self.matches(now)
            if not matched and not matches:
                return None
            if event is WatchType.MODIFIED and matched != matches:
                event = WatchType.ADDED if matches else WatchType.DELETED
                if before is not None and matched:
                    shown = with_revision(before, now.revision)
        if self.view is not None:
            shown = self.view(shown)
        return RawEvent(event, shown.data, now.revision, shown)


def with_revision(stored: Stored, revision: int) -> Stored:
    """The same content under another resourceVersion, as selector deletions carry it."""
    return build_stored(stored.kind, stored.decode(), revision)


class Watch:
    """One open watch. Iterate `batches()`; `close()` when the client is gone."""

    def __init__(
        self,
        hub: WatchHub,
        wanted: Filter,
        *,
        timeout_s: float,
        bookmark: Callable[[int, bool], bytes] | None,
    ) -> None:
        self._hub = hub
        self._filter = wanted
        self._bookmark = bookmark
        self._loop = asyncio.get_running_loop()
        self._end_at = self._loop.time() + timeout_s
        self._backlog: deque[RawEvent] = deque()
        self._limit = MAX_BACKLOG
        self._wake = asyncio.Event()
        self._closed = False

    def start_with(self, initial: Iterable[RawEvent]) -> None:
        """Queue what comes before live changes, however much it is."""
        self._backlog.extend(initial)
        self._limit = len(self._backlog) + MAX_BACKLOG
        self._wake.set()

    def offer(self, change: Committed) -> None:
        """Called by the hub for each change of the resource."""
        event = self._filter.select(change)
        if event is None:
            return
        if len(self._backlog) >= self._limit:
            self.close()
            return
        self._backlog.append(event)
        self._wake.set()

    async def batches(self) -> AsyncIterator[Sequence[RawEvent]]:
        """Events in commit order, everything that is ready at once in one batch.

        Ends cleanly at the time limit, on `close`, and when the reader was too slow.
        """
        try:
            while True:
                if self._backlog:
                    yield self._drain()
                    continue
                if self._closed or not await self._wait():
                    return
                if self._bookmark and not self._backlog and not self._closed:
                    yield self._bookmark_now(self._bookmark)
        finally:
            self.close()

    async def _wait(self) -> bool:
        """Wait for events, a due bookmark or the end; False at the end."""
        remaining = self._end_at - self._loop.time()
        if remaining <= 0:
            return False
        self._wake.clear()
        pause = min(remaining, BOOKMARK_INTERVAL_S) if self._bookmark else remaining
        try:
            async with asyncio.timeout(pause):
                await self._wake.wait()
        except TimeoutError:
            return self._bookmark is not None
        return True

    def _drain(self) -> Sequence[RawEvent]:
        backlog = self._backlog
        if len(backlog) <= MAX_BATCH:
            batch = list(backlog)
            backlog.clear()
            return batch
        return [backlog.popleft() for _ in range(MAX_BATCH)]

    def _bookmark_now(self, render: Callable[[int, bool], bytes]) -> Sequence[RawEvent]:
        revision = self._hub.revision
        return (RawEvent(WatchType.BOOKMARK, render(revision, False), revision),)

    def close(self) -> None:
        """Stop; a pending `batches()` ends."""
        self._closed = True
        self._hub.drop(self)
        self._wake.set()


class WatchHub:
    """All open watches and the history behind them."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.revision = history.floor
        self._watches: dict[str, dict[Watch, None]] = {}

    def publish(self, change: Committed) -> None:
        """Tell everybody; called in commit order."""
        self.history.add(change)
        self.revision = change.now.revision
        for watch in tuple(self._watches.get(change.now.kind.resource, ())):
            watch.offer(change)

    def open(
        self,
        wanted: Filter,
        *,
        timeout_s: float,
        bookmark: Callable[[int, bool], bytes] | None,
    ) -> Watch:
        """A watch that hears of every change from now on."""
        watch = Watch(self, wanted, timeout_s=timeout_s, bookmark=bookmark)
        self._watches.setdefault(wanted.resource, {})[watch] = None
        return watch

    def drop(self, watch: Watch) -> None:
        """Forget a watch."""
        for watches in self._watches.values():
            watches.pop(watch, None)

    def close_resource(self, resource: str) -> None:
        """End every watch of a resource that is not served any more."""
        for watch in tuple(self._watches.get(resource, ())):
            watch.close()

    def close(self) -> None:
        """End every watch."""
        for resource in tuple(self._watches):
            self.close_resource(resource)
