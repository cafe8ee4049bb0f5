"""A lister that lags, repeats, misses changes and relists, as watches do on a bad day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.base.objects import dig, labels_of, name_of, namespace_of, resource_version_of
from trainwright.machinery.api import WatchType

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from tests.simulation.store import Place, ToyStore
    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object
    from trainwright.machinery.api import Handler


class BadLister:
    """Implements `machinery.api.Lister`; what it shows never goes back in time."""

    def __init__(self, store: ToyStore, rng: random.Random) -> None:
        self._store = store
        self._rng = rng
        self._views: dict[Kind, dict[Place, Object]] = {}
        self._seen: dict[Kind, int] = {}
        self._shown: dict[Kind, int] = {}
        self._handlers: dict[Kind, list[Handler]] = {}
        self._holes: set[Kind] = set()

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        return self._view(kind).get((namespace, name))

    def list(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        labels: Mapping[str, str] | None = None,
        owner_uid: str = "",
    ) -> list[Object]:
        return [
            obj
            for obj in self._view(kind).values()
            if (not namespace or namespace_of(obj) == namespace)
            and all(labels_of(obj).get(key) == value for key, value in (labels or {}).items())
            and (not owner_uid or owner_uid in _owners_of(obj))
        ]

    def subscribe(self, kind: Kind, handler: Handler) -> None:
        for obj in self._view(kind).values():
            handler(WatchType.ADDED, None, obj)
        self._handlers.setdefault(kind, []).append(handler)

    def stumble(self) -> None:
        """Learn one more change of one kind, or repeat, miss or relist."""
        behind = [k for k, seen in self._seen.items() if seen < len(self._store.table(k).log)]
        if not behind:
            return
        kind = self._rng.choice(behind)
        luck = self._rng.random()
        if luck < 0.08:
            self._seen[kind] += 1
            self._note_shown(kind)
            self._holes.add(kind)
        elif luck < 0.16:
            self._relist(kind)
        else:
            self._learn(kind, times=2 if luck < 0.24 else 1)

    def catch_up(self) -> None:
        """Show everything as it is."""
        for kind in list(self._seen):
            if kind in self._holes:
                self._relist(kind)
            while self._seen[kind] < len(self._store.table(kind).log):
                self._learn(kind)

    def observe_write(self, kind: Kind, written: Object) -> None:
        """Show an own write before the watch tells of it, as informers do."""
        view, place = self._view(kind), (namespace_of(written), name_of(written))
        if _revision_of(written) <= self._shown[kind]:
            return  # the watch has shown that, or what became of it
        before = view.get(place)
        if before is None or _revision_of(written) > _revision_of(before):
            view[place] = written
            change = WatchType.ADDED if before is None else WatchType.MODIFIED
            self._tell(kind, change, before, written)

    def _view(self, kind: Kind) -> dict[Place, Object]:
        if kind not in self._views:
            table = self._store.table(kind)
            self._views[kind] = dict(table.objects)
            self._seen[kind] = len(table.log)
            self._note_shown(kind)
        return self._views[kind]

    def _note_shown(self, kind: Kind) -> None:
        """Up to which revision everything has been shown."""
        seen = self._store.table(kind).log[: self._seen[kind]]
        self._shown[kind] = _revision_of(seen[-1][1]) if seen else 0

    def _learn(self, kind: Kind, times: int = 1) -> None:
        change, obj = self._store.table(kind).log[self._seen[kind]]
        self._seen[kind] += 1
        self._note_shown(kind)
        place = (namespace_of(obj), name_of(obj))
        before = self._views[kind].get(place)
        if before is not None and _revision_of(before) > _revision_of(obj):
            return  # a write of our own is shown already
        if change is WatchType.DELETED:
            self._views[kind].pop(place, None)
        else:
            self._views[kind][place] = obj
        for _ in range(times):
            self._tell(kind, change, before, obj)

    def _relist(self, kind: Kind) -> None:
        table, before = self._store.table(kind), self._views[kind]
        self._views[kind] = dict(table.objects)
        self._seen[kind] = len(table.log)
        self._note_shown(kind)
        self._holes.discard(kind)
        for place, obj in table.objects.items():
            change = WatchType.MODIFIED if place in before else WatchType.ADDED
            self._tell(kind, change, before.get(place), obj)
        for place, obj in before.items():
            if place not in table.objects:
                self._tell(kind, WatchType.DELETED, obj, obj)

    def _tell(self, kind: Kind, change: WatchType, before: Object | None, obj: Object) -> None:
        for handler in self._handlers.get(kind, ()):
            handler(change, before, obj)


def _owners_of(obj: Object) -> set[str]:
    return {str(ref.get("uid")) for ref in dig(obj, "metadata", "ownerReferences", default=())}


def _revision_of(obj: Object) -> int:
    return int(resource_version_of(obj) or 0)
