"""Core events and events.k8s.io events: one stored object, two ways to look at it.

They are kept in the core form. Source: Kubernetes, conversion of events.k8s.io/v1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api import kinds

if TYPE_CHECKING:
    from trainwright.base.objects import Object

_RENAMED = {
    "message": "note",
    "involvedObject": "regarding",
    "reportingComponent": "reportingController",
    "count": "deprecatedCount",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "source": "deprecatedSource",
}
_BACK = {new: old for old, new in _RENAMED.items()}


def to_events_v1(event: Object) -> Object:
    """The events.k8s.io form of a core event."""
    renamed = {_RENAMED.get(key, key): value for key, value in event.items()}
    return {**renamed, "apiVersion": kinds.EVENT_V1.api_version, "kind": "Event"}


def from_events_v1(event: Object) -> Object:
    """The core form of an events.k8s.io event."""
    renamed = {_BACK.get(key, key): value for key, value in event.items()}
    renamed |= {"apiVersion": "v1", "kind": "Event"}
    renamed.setdefault("involvedObject", {})
    return renamed
