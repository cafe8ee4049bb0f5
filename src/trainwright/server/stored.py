"""One object as the store keeps it: JSON bytes, and beside them only what is needed to find it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from trainwright.base.objects import Object, dig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainwright.api.kinds import Kind

_decode = msgspec.json.Decoder(dict[str, object]).decode
_NOTHING: Mapping[str, str] = {}


@dataclass(slots=True, eq=False)
class Stored:
    """One committed state of one object. Never edited: the next write makes a new one."""

    kind: Kind
    namespace: str
    name: str
    uid: str
    revision: int
    """`metadata.resourceVersion` as a number."""
    labels: Mapping[str, str]
    owners: tuple[str, ...]
    """The uids of `metadata.ownerReferences`."""
    node_name: str
    """`spec.nodeName` of pods, else empty."""
    data: bytes
    """The whole object as JSON, apiVersion and kind included; spliced into answers as it is."""

    @property
    def resource_version(self) -> str:
        """`metadata.resourceVersion` as the wire has it."""
        return str(self.revision)

    def decode(self) -> Object:
        """A fresh dict that the caller may edit."""
        return _decode(self.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPage:
    """One page of a list, items still as bytes."""

    items: Sequence[Stored]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None
    """`metadata.remainingItemCount`; None when it is unknown or there is no next page."""


def build_stored(kind: Kind, obj: Object, revision: int, data: bytes | None = None) -> Stored:
    """Index `obj`; encodes it with `revision` as its resourceVersion unless `data` is given."""
    metadata = obj["metadata"]
    if data is None:
        metadata["resourceVersion"] = str(revision)
        data = msgspec.json.encode(obj)
    owners: Sequence[Mapping[str, str]] = metadata.get("ownerReferences") or ()
    return Stored(
        kind=kind,
        namespace=metadata.get("namespace") or "",
        name=metadata["name"],
        uid=metadata.get("uid") or "",
        revision=revision,
        labels=metadata.get("labels") or _NOTHING,
        owners=tuple(owner.get("uid", "") for owner in owners),
        node_name=dig(obj, "spec", "nodeName", default="") if kind.resource == "pods" else "",
        data=data,
    )


def render_as_version(kind: Kind, data: bytes) -> bytes:
    """The JSON of a stored object under its kind's own version.

    Another release may have stored it under another one; fields are taken over as they are, which
    is what the conversion strategy None of CRDs does.
    """
    if data.startswith(f'{{"apiVersion":"{kind.api_version}",'.encode()):
        return data
    obj = _decode(data)
    if obj.get("apiVersion") == kind.api_version:
        return data
    return msgspec.json.encode({**obj, "apiVersion": kind.api_version})


class _Owner(msgspec.Struct):
    uid: str = ""


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    owners: list[_Owner] | None = msgspec.field(default=None, name="ownerReferences")


class _Spec(msgspec.Struct):
    node_name: str = msgspec.field(default="", name="nodeName")


class _Head(msgspec.Struct):
    metadata: _Metadata


class _PodHead(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec


_read_head = msgspec.json.Decoder(_Head).decode
_read_pod_head = msgspec.json.Decoder(_PodHead).decode


def read_stored(kind: Kind, data: bytes, revision: int) -> Stored:
    """Index an object out of its bytes without building the whole of it."""
    pod = _read_pod_head(data) if kind.resource == "pods" else None
    metadata = (pod or _read_head(data)).metadata
    return Stored(
        kind=kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        revision=revision,
        labels=metadata.labels or _NOTHING,
        owners=tuple(owner.uid for owner in metadata.owners or ()),
        node_name=pod.spec.node_name if pod else "",
        data=data,
    )
