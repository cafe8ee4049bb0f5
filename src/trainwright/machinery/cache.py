"""Objects as informers keep them: a small struct to find each by, the rest as bytes until it is read.

The same idea as the server's store, with one thing more: a projection says which parts of a kind are
kept at all. What nobody reads is dropped when it arrives.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object, ObjectView

Name = tuple[str, str]
"""(namespace, name); the namespace of cluster-scoped objects is empty."""
Fields = dict[str, msgspec.Raw]
"""One object, its fields not decoded."""

_NOTHING: Mapping[str, str] = {}
_read_fields = msgspec.json.Decoder(Fields).decode
_read_object = msgspec.json.Decoder(dict[str, object]).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """Which parts of a kind's objects are kept. managedFields never are."""

    metadata_only: bool = False
    """The server sends nothing else: objects are asked for as PartialObjectMetadata."""
    spec_fields: frozenset[str] | None = None
    """Fields of the spec that are kept; None keeps them all."""
    resync: bool = False
    """Objects are told again now and then, although nothing changed."""
    is_settled: Callable[[ObjectView], bool] = lambda _obj: False
    """Objects that a resync skips, since nothing will happen to them any more."""


class CachedObject(msgspec.Struct, frozen=True, gc=False, eq=False):
    """One object as it was last seen or written."""

    namespace: str
    name: str
    uid: str
    revision: int
    """`metadata.resourceVersion` as a number; 0 when it is none, which is older than any."""
    labels: Mapping[str, str]
    owners: tuple[str, ...]
    """The uids of `metadata.ownerReferences`."""
    data: bytes
    """What the projection kept, as JSON."""

    @property
    def key(self) -> Name:
        """Where it is found."""
        return self.namespace, self.name

    def decode(self) -> Object:
        """A fresh dict."""
        return _read_object(self.data)

    def is_newer_than(self, other: CachedObject) -> bool:
        """Whether this is a later state of the same object, by resourceVersion."""
        return self.revision == 0 or self.revision > other.revision


def parse_revision(resource_version: str) -> int:
    """A resourceVersion as a number; 0 when it is none."""
    return int(resource_version) if resource_version.isdecimal() else 0


class _Owner(msgspec.Struct):
    uid: str = ""


class _Head(msgspec.Struct):
    name: str = ""
    namespace: str | None = None
    uid: str = ""
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    labels: dict[str, str] | None = None
    owners: list[_Owner] | None = msgspec.field(default=None, name="ownerReferences")


_read_head = msgspec.json.Decoder(_Head).decode


def build_cached(kind: Kind, fields: Fields, projection: Projection) -> CachedObject:
    """What is kept of an object; nothing in it refers to the bytes that it came in."""
    head = _read_head(fields["metadata"])
    return CachedObject(
        namespace=sys.intern(head.namespace or ""),
        name=head.name,
        uid=head.uid,
        revision=parse_revision(head.resource_version),
        labels=head.labels or _NOTHING,
        owners=tuple(owner.uid for owner in head.owners or ()),
        data=msgspec.json.encode(_project(kind, fields, projection)),
    )


def build_cached_object(kind: Kind, obj: Object, projection: Projection) -> CachedObject:
    """What is kept of an object that is decoded already."""
    return build_cached(kind, _read_fields(msgspec.json.encode(obj)), projection)


def _project(kind: Kind, fields: Fields, projection: Projection) -> dict[str, object]:
    metadata = _read_fields(fields["metadata"])
    metadata.pop("managedFields", None)
    # Lists of built-in kinds leave apiVersion and kind out, and partial objects have others.
    named: dict[str, object] = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": metadata,
    }
    if projection.metadata_only:
        return named
    kept: dict[str, object] = {**fields, **named}
    if projection.spec_fields is not None and "spec" in fields:
        spec = _read_fields(fields["spec"])
        kept["spec"] = {key: spec[key] for key in spec if key in projection.spec_fields}
    return kept


class Cache:
    """The objects of one kind, found by name and by owner."""

    def __init__(self) -> None:
        self._objects: dict[Name, CachedObject] = {}
        self._by_owner: dict[str, list[Name]] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, name: Name) -> CachedObject | None:
        """The object of that name."""
        return self._objects.get(name)

    def put(self, obj: CachedObject) -> CachedObject | None:
        """Add or replace; what was there before."""
        before = self._objects.get(obj.key)
        if before is not None and before.owners != obj.owners:
            self._forget_owners(before)
        if before is None or before.owners != obj.owners:
            for uid in obj.owners:
                self._by_owner.setdefault(uid, []).append(obj.key)
        self._objects[obj.key] = obj
        return before

    def remove(self, name: Name) -> CachedObject | None:
        """Drop; what was there."""
        before = self._objects.pop(name, None)
        if before is not None:
            self._forget_owners(before)
        return before

    def find(
        self, namespace: str = "", labels: Mapping[str, str] | None = None, owner_uid: str = ""
    ) -> Sequence[CachedObject]:
        """Objects with all `labels` and, when given, that owner."""
        found: Iterable[CachedObject] = self._objects.values()
        if owner_uid:
            found = (self._objects[name] for name in self._by_owner.get(owner_uid, ()))
        return [
            obj
            for obj in found
            if (not namespace or obj.namespace == namespace)
            and (not labels or labels.items() <= obj.labels.items())
        ]

    def names(self, namespace: str = "") -> Sequence[Name]:
        """The names of all objects; `namespace=""` means all."""
        return [name for name in self._objects if not namespace or name[0] == namespace]

    def forget_order(self, namespace: str = "") -> None:
        """Let any state be newer than what is here: the server's revisions have started anew."""
        for name in self.names(namespace):
            self._objects[name] = msgspec.structs.replace(self._objects[name], revision=0)

    def _forget_owners(self, obj: CachedObject) -> None:
        for uid in obj.owners:
            names = self._by_owner[uid]
            names.remove(obj.key)
            if not names:
                del self._by_owner[uid]
