"""One stored object under several apiVersions: events in both groups, versions of a CRD."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from trainwright.api import kinds
from trainwright.server.event_views import from_events_v1, to_events_v1

if TYPE_CHECKING:
    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object
    from trainwright.server.requests import ServedKind
    from trainwright.server.stored import Stored, StoredPage


def to_view(kind: Kind, obj: Object) -> Object:
    """A stored object as `kind` shows it. Source: Kubernetes, conversion strategy None."""
    if kind == kinds.EVENT_V1:
        return to_events_v1(obj)
    return obj if obj["apiVersion"] == kind.api_version else {**obj, "apiVersion": kind.api_version}


def from_view(kind: Kind, storage: Kind, obj: Object) -> Object:
    """An object of `kind` as it is stored."""
    if kind == kinds.EVENT_V1:
        return from_events_v1(obj)
    return {**obj, "apiVersion": storage.api_version} if kind is not storage else obj


def view_stored(served: ServedKind, stored: Stored) -> Stored:
    """A stored object under the kind that was asked for."""
    if stored.kind is served.kind or stored.kind == served.kind:
        return stored
    data = msgspec.json.encode(to_view(served.kind, stored.decode()))
    return replace(stored, kind=served.kind, data=data)


def view_page(served: ServedKind, page: StoredPage) -> StoredPage:
    """A page under the kind that was asked for."""
    return replace(page, items=[view_stored(served, stored) for stored in page.items])
