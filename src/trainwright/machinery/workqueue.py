"""The queue between watches and workers: level-triggered keys, fair, de-duplicated, with back-off.

One key is worked on by one worker at a time; a key that is added meanwhile runs again afterwards.
Two lanes: keys from changes come before keys from initial lists and resyncs. Inside a lane namespaces
take turns, so that a burst in one does not starve the others.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainwright.base.times import Clock

BACKOFF_BASE_S = 0.05
BACKOFF_CAP_S = 300.0
LONGEST_SLEEP_S = 30.0
"""A laptop sleeps: due times are compared again after at most this long."""


class Key(NamedTuple):
    """Which object to reconcile; `namespace` is "" for cluster scope."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class _Lane:
    """Keys that wait, taken round robin over their namespaces."""

    def __init__(self) -> None:
        self._by_namespace: OrderedDict[str, deque[Key]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._by_namespace)

    def push(self, key: Key) -> None:
        self._by_namespace.setdefault(key.namespace, deque()).append(key)

    def pop(self) -> Key:
        namespace, keys = next(iter(self._by_namespace.items()))
        key = keys.popleft()
        if keys:
            self._by_namespace.move_to_end(namespace)
        else:
            del self._by_namespace[namespace]
        return key


class _Later:
    """Keys with due times on one clock; of several times of a key the earliest counts."""

    def __init__(self, read_s: Callable[[], float]) -> None:
        self._read_s = read_s
        self._heap: list[tuple[float, int, Key]] = []
        self._due: dict[Key, float] = {}
        self._order = itertools.count()

    def add(self, key: Key, delay_s: float) -> None:
        due = self._read_s() + delay_s
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            heapq.heappush(self._heap, (due, next(self._order), key))

    def find_wait_s(self) -> float | None:
        return self._heap[0][0] - self._read_s() if self._heap else None

    def pop_due(self) -> list[Key]:
        now, keys = self._read_s(), []
        while self._heap and self._heap[0][0] <= now:
            due, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                keys.append(key)
        return keys


class WorkQueue:
    """Keys to reconcile. Not thread-safe: everything happens in one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._urgent, self._patient = _Lane(), _Lane()
        self._waiting: dict[Key, bool] = {}
        """Keys that wait, and whether in the urgent lane; lanes also hold keys that moved on."""
        self._active: set[Key] = set()
        self._again: dict[Key, bool] = {}
        self._failures: dict[Key, int] = {}
        # A laptop sleeps, and its wall clock is set: a deadline keeps to the wall clock, a back-off not.
        self._appointments = _Later(lambda: clock.now().timestamp())
        self._back_offs = _Later(clock.monotonic)
        self._laters = (self._appointments, self._back_offs)
        self._timer: asyncio.TimerHandle | None = None
        self._ready: deque[asyncio.Future[None]] = deque()
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, key: Key, *, urgent: bool = True) -> None:
        """Ask for a reconcile; a key that already waits is not added twice.

        `urgent=False` is for what has not changed; a change moves such a key to the front lane.
        """
        if self._closed:
            return
        if key in self._active:
            self._again[key] = urgent or self._again.get(key, False)
            return
        before = self._waiting.get(key)
        if before or before == urgent:
            return
        self._waiting[key] = urgent
        (self._urgent if urgent else self._patient).push(key)
        if before is None:
            self._wake_one()

    def add_after(self, key: Key, delay_s: float) -> None:
        """Ask for a reconcile later; of several due times the earliest counts."""
        if self._closed:
            return
        if delay_s <= 0:
            self.add(key)
            return
        self._appointments.add(key, delay_s)
        self._arm()

    def add_failed(self, key: Key) -> float:
        """Ask for a retry with exponential back-off; returns the delay in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay_s: float = min(BACKOFF_BASE_S * 2 ** min(failures, 20), BACKOFF_CAP_S)
        if not self._closed:
            self._back_offs.add(key, delay_s)
            self._arm()
        return delay_s

    def retry_failed(self, namespace: str) -> None:
        """Ask for a reconcile of every key of a namespace that waits for its retry."""
        for key in [key for key in self._failures if key.namespace == namespace]:
            self.add(key)

    def forget(self, key: Key) -> None:
        """Reset the back-off of a key that succeeded."""
        self._failures.pop(key, None)

    async def take(self) -> Key | None:
        """The next key, to be given back with `done`; None once the queue is closed."""
        while not self._closed:
            if (key := self._pop()) is not None:
                self._active.add(key)
                return key
            ready = asyncio.get_running_loop().create_future()
            self._ready.append(ready)
            try:
                await ready
            finally:
                if ready in self._ready:
                    self._ready.remove(ready)
        return None

    def done(self, key: Key) -> None:
        """Give a key back; it runs again at once if it was added meanwhile."""
        self._active.discard(key)
        again = self._again.pop(key, None)
        if again is not None:
            self.add(key, urgent=again)

    def close(self) -> None:
        """Let every `take` return None."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for ready in self._ready:
            if not ready.done():
                ready.set_result(None)

    def _pop(self) -> Key | None:
        for lane, urgent in ((self._urgent, True), (self._patient, False)):
            while lane:
                key = lane.pop()
                if self._waiting.get(key) is urgent:
                    del self._waiting[key]
                    return key
        return None

    def _wake_one(self) -> None:
        while self._ready:
            ready = self._ready.popleft()
            if not ready.done():
                ready.set_result(None)
                return

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waits = [w for later in self._laters if (w := later.find_wait_s()) is not None]
        if waits and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(
                min(max(min(waits), 0.0), LONGEST_SLEEP_S), self._release_due
            )

    def _release_due(self) -> None:
        for later in self._laters:
            for key in later.pop_due():
                self.add(key)
        self._arm()
