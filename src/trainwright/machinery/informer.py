"""Informers: `Lister` over HTTP, a cache a kind, kept true by list and watch, with handlers.

Own writes are laid over the cache (`observe_write`) until the watch has caught up, so that a reconcile
never acts on a state older than its own last write.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trainwright.base.objects import Object, resource_version_of, uid_of
from trainwright.machinery.api import WatchType
from trainwright.machinery.cache import Cache, build_cached_object
from trainwright.machinery.cache_projections import PROJECTIONS, WHOLE
from trainwright.machinery.reflector import ITEMS_PER_TURN, Reflector, ReflectorSettings, Turns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainwright.api.kinds import Kind
    from trainwright.machinery.api import Handler, RawReads
    from trainwright.machinery.cache import CachedObject, Name, Projection

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class InformerSettings:
    """How a set of informers behaves."""

    reading: ReflectorSettings = field(default_factory=ReflectorSettings)
    resync_s: float = 4 * 3600.0
    """Within this time every object that is not settled is told once more."""
    resync_tick_s: float = 30.0
    """How often some of them are."""
    freeze: bool = True
    """Take what is in memory after the first sync out of the garbage collector's sight."""


class Informer:
    """The cache of one kind, and who hears of its changes."""

    def __init__(self, kind: Kind, projection: Projection) -> None:
        self._kind = kind
        self._projection = projection
        self._cache = Cache()
        self._handlers: list[Handler] = []
        self.reflectors: Sequence[Reflector] = ()

    def __len__(self) -> int:
        return len(self._cache)

    @property
    def is_synced(self) -> bool:
        """Whether everything has been listed once."""
        return all(reflector.synced.is_set() for reflector in self.reflectors)

    def get(self, namespace: str, name: str) -> Object | None:
        """The object as last seen or written; a copy of the caller's own."""
        cached = self._cache.get((namespace, name))
        return None if cached is None else cached.decode()

    def list(
        self, namespace: str = "", labels: Mapping[str, str] | None = None, owner_uid: str = ""
    ) -> Sequence[Object]:
        """Objects with all `labels` and, when given, that owner."""
        return [cached.decode() for cached in self._cache.find(namespace, labels, owner_uid)]

    def subscribe(self, handler: Handler) -> None:
        """Tell `handler` of everything that is there (SYNC) and of every change from now on."""
        self._handlers.append(handler)
        for cached in self._cache.find():
            handler(WatchType.SYNC, None, cached.decode())

    def observe_write(self, written: Object) -> None:
        """Take the server's answer to a write in, unless the watch has shown that or more already."""
        if not uid_of(written) or not resource_version_of(written):
            return  # a Status, or an answer of our own
        cached = build_cached_object(self._kind, written, self._projection)
        if cached.revision > self._find_seen(cached.namespace):
            self.observe(cached, initial=False)

    def observe(self, obj: CachedObject, *, initial: bool) -> None:
        """Take in a state, unless a later one is here (as after a write of our own)."""
        known = self._cache.get(obj.key)
        if known is not None and not obj.is_newer_than(known):
            return
        self._cache.put(obj)
        if initial:
            change = WatchType.SYNC
        else:
            change = WatchType.ADDED if known is None else WatchType.MODIFIED
        self._tell(change, known, obj)

    def observe_removal(self, obj: CachedObject) -> None:
        """Drop the object, unless there is a later one of the name."""
        known = self._cache.get(obj.key)
        if known is not None and (obj.is_newer_than(known) or obj.revision == known.revision):
            self._remove(known, obj)

    def observe_listed(self, namespace: str, names: set[Name], revision: int) -> None:
        """Drop what a list did not show, but for what we wrote after it."""
        for name in self._cache.names(namespace):
            known = self._cache.get(name)
            if known is not None and name not in names and known.revision <= revision:
                self._remove(known, known)

    def forget_order(self, namespace: str) -> None:
        """Let the next list replace everything, whatever its revisions."""
        self._cache.forget_order(namespace)

    async def drip(self, period_s: float, tick_s: float) -> None:
        """Tell every object that is not settled again, a few at a time, for ever."""
        while True:
            names = self._cache.names()
            ticks = max(1, math.ceil(period_s / tick_s))
            for tick in range(ticks):
                await asyncio.sleep(tick_s)
                for number, name in enumerate(names[tick::ticks], start=1):
                    self._tell_again(name)
                    if number % ITEMS_PER_TURN == 0:
                        await asyncio.sleep(0)

    def _tell_again(self, name: Name) -> None:
        cached = self._cache.get(name)
        if cached is not None and not self._projection.is_settled(cached.decode()):
            self._tell(WatchType.SYNC, cached, cached)

    def _find_seen(self, namespace: str) -> int:
        """Up to which revision the watch of that namespace has shown everything."""
        return max(
            (r.revision for r in self.reflectors if r.namespace in ("", namespace)), default=0
        )

    def _remove(self, known: CachedObject, last: CachedObject) -> None:
        self._cache.remove(known.key)
        self._tell(WatchType.DELETED, known, last)

    def _tell(self, change: WatchType, old: CachedObject | None, new: CachedObject) -> None:
        if not self._handlers:
            return
        before, now = old.decode() if old is not None else None, new.decode()
        for handler in self._handlers:
            handler(change, before, now)


class InformerSet:
    """`Lister` over HTTP: one informer a kind. Declare kinds, `run`, `wait_synced`, then read.

    A kind is declared by `informer` or `subscribe`. What is kept of each kind is in `PROJECTIONS`.
    """

    def __init__(
        self,
        api: RawReads,
        namespaces: Sequence[str] = (),
        *,
        settings: InformerSettings | None = None,
        projections: Mapping[Kind, Projection] = PROJECTIONS,
    ) -> None:
        """`namespaces`: the only ones to look at; none means all."""
        self._api = api
        self._namespaces = tuple(dict.fromkeys(namespaces))
        self._settings = settings or InformerSettings()
        self._projections = projections
        self._turns = Turns(self._settings.reading)
        self._informers: dict[Kind, Informer] = {}
        self._running: asyncio.TaskGroup | None = None

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """The object as last seen or written.

        Raises:
            RuntimeError: the kind was not declared, so that nothing is known of it.
        """
        return self._declared(kind).get(namespace, name)

    def list(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        labels: Mapping[str, str] | None = None,
        owner_uid: str = "",
    ) -> Sequence[Object]:
        """Objects with all `labels` and, when given, that owner. Raises as `get` does."""
        return self._declared(kind).list(namespace, labels, owner_uid)

    def subscribe(self, kind: Kind, handler: Handler) -> None:
        """Tell `handler` of everything that is there (SYNC) and of every change from now on."""
        self.informer(kind).subscribe(handler)

    def observe_write(self, kind: Kind, written: Object) -> None:
        """Take the server's answer to a write of ours in; of kinds that nobody reads: nothing."""
        if kind in self._informers:
            self._informers[kind].observe_write(written)

    def informer(self, kind: Kind) -> Informer:
        """The informer of a kind, declared by this."""
        if kind not in self._informers:
            self._informers[kind] = self._build(kind)
            if self._running is not None:
                self._start(self._running, kind)
        return self._informers[kind]

    async def run(self) -> None:
        """Keep every informer true until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._running = group
            try:
                for kind in self._informers:
                    self._start(group, kind)
                await self.wait_synced()
                if self._settings.freeze:
                    gc.collect()
                    gc.freeze()
                await asyncio.get_running_loop().create_future()
            finally:
                self._running = None

    async def wait_synced(self) -> None:
        """Return once every informer has listed."""
        for informer in list(self._informers.values()):
            for reflector in informer.reflectors:
                await reflector.synced.wait()

    def _declared(self, kind: Kind) -> Informer:
        informer = self._informers.get(kind)
        if informer is None:
            raise RuntimeError(
                f"{kind.resource} was read from informers but not declared: "
                "call informer() or subscribe() for it first"
            )
        return informer

    def _build(self, kind: Kind) -> Informer:
        projection = self._projections.get(kind, WHOLE)
        informer = Informer(kind, projection)
        namespaces = self._namespaces if kind.namespaced else ()
        informer.reflectors = [
            Reflector(
                self._api,
                kind,
                namespace,
                informer,
                projection=projection,
                turns=self._turns,
                settings=self._settings.reading,
            )
            for namespace in namespaces or ("",)
        ]
        return informer

    def _start(self, group: asyncio.TaskGroup, kind: Kind) -> None:
        informer = self._informers[kind]
        for reflector in informer.reflectors:
            name = f"reflector-{kind.resource}-{reflector.namespace or 'all'}"
            group.create_task(reflector.run(), name=name)
        if self._projections.get(kind, WHOLE).resync:
            settings = self._settings
            group.create_task(
                informer.drip(settings.resync_s, settings.resync_tick_s),
                name=f"resync-{kind.resource}",
            )
