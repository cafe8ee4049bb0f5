"""Events live for an hour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.kinds import EVENT
from trainwright.base.objects import dig, is_deleting
from trainwright.base.times import seconds_between
from trainwright.core.plan import Plan, build_delete

if TYPE_CHECKING:
    from datetime import datetime

    from trainwright.base.objects import Object, ObjectView

EVENT_TTL_S = 3600.0
"""Counted from the last occurrence; the API server's default."""


def plan_event_expiry(event: Object, now: datetime, ttl_s: float = EVENT_TTL_S) -> Plan:
    """Delete an event that has not occurred for `ttl_s` seconds, or come back when it has not."""
    if is_deleting(event):
        return Plan()
    left_s = ttl_s - seconds_between(find_last_seen(event), now)
    if left_s > 0:
        return Plan(requeue_after_s=left_s)
    return Plan(actions=(build_delete(EVENT, event, as_seen=True),))


def find_last_seen(event: ObjectView) -> str:
    """The wire time of the event's last occurrence."""
    times = (
        dig(event, "series", "lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        dig(event, "metadata", "creationTimestamp"),
    )
    return str(next(time for time in times if time))
