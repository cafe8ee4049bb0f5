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
        node_name=dig(obj, "spec", "nodeName", default="") if kind.plural == "pods" else "",
        data=data,
    )
