"""All committed objects in memory, sorted by namespace and name, with the few indexes that pay."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from trainwright.api import wellknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from trainwright.server.stored import Stored

INDEXED_LABELS = (
    wellknown.JOBSET_NAME_LABEL,
    wellknown.JOBSET_UID_LABEL,
    wellknown.JOB_NAME_LABEL,
    wellknown.CONTROLLER_UID_LABEL,
    "job-name",
    "controller-uid",
)

Key = tuple[str, str]
"""(namespace, name); the namespace of cluster-scoped objects is empty."""
_AFTER_NAMESPACE = "\uffff"


class ObjectIndex:
    """The objects of one resource."""

    def __init__(self) -> None:
        self._objects: dict[Key, Stored] = {}
        self._keys: list[Key] = []
        self._found: dict[tuple[str, str], dict[Key, None]] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: Key) -> Stored | None:
        """The object of that key."""
        return self._objects.get(key)

    def put(self, stored: Stored) -> None:
        """Add or replace."""
        key = (stored.namespace, stored.name)
        before = self._objects.get(key)
        if before is None:
            insort(self._keys, key)
        self._objects[key] = stored
        old = set(_terms(before)) if before else set()
        new = set(_terms(stored))
        for term in old - new:
            self._forget(term, key)
        for term in new - old:
            self._found.setdefault(term, {})[key] = None

    def remove(self, key: Key) -> None:
        """Drop the object of that key, which must be there."""
        stored = self._objects.pop(key)
        del self._keys[bisect_left(self._keys, key)]
        for term in set(_terms(stored)):
            self._forget(term, key)

    def _forget(self, term: tuple[str, str], key: Key) -> None:
        keys = self._found[term]
        del keys[key]
        if not keys:
            del self._found[term]

    def keys(self, namespace: str = "") -> Sequence[Key]:
        """The keys in order; `namespace=""` means all."""
        if not namespace:
            return self._keys
        start = bisect_left(self._keys, (namespace, ""))
        return self._keys[start : bisect_left(self._keys, (namespace, _AFTER_NAMESPACE))]

    def all(self, namespace: str = "") -> Iterator[Stored]:
        """The objects in order; safe against changes while it is iterated."""
        objects = self._objects
        return iter([objects[key] for key in self.keys(namespace)])

    def count(self, namespace: str) -> int:
        """How many objects the namespace has."""
        return len(self.keys(namespace))

    def find(
        self, labels: Mapping[str, str], *, owner_uid: str = "", node_name: str = ""
    ) -> Iterable[Stored] | None:
        """Candidates by the best index, in no order; None when no index fits."""
        terms = [("owner", owner_uid)] if owner_uid else []
        terms += [("node", node_name)] if node_name else []
        terms += [(label, labels[label]) for label in INDEXED_LABELS if label in labels]
        if not terms:
            return None
        keys = min((self._found.get(term, {}) for term in terms), key=len)
        return [self._objects[key] for key in keys]


def _terms(stored: Stored) -> Iterator[tuple[str, str]]:
    for uid in stored.owners:
        yield "owner", uid
    if stored.node_name:
        yield "node", stored.node_name
    if stored.labels:
        for label in INDEXED_LABELS:
            value = stored.labels.get(label)
            if value is not None:
                yield label, value
