"""Times as the wire writes them, and durations between them. The clock itself comes in from outside."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Where the time comes from: the machine, or a test."""

    def now(self) -> datetime:
        """The wall clock, with a time zone (UTC)."""
        ...

    def monotonic(self) -> float:
        """Seconds that only go forward, for back-off and leases."""
        ...


def render_time(moment: datetime) -> str:
    """RFC 3339 in UTC with whole seconds, as `metav1.Time` writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def render_micro_time(moment: datetime) -> str:
    """RFC 3339 in UTC with microseconds, as `metav1.MicroTime` writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> datetime:
    """Read a `metav1.Time` or `metav1.MicroTime`.

    Raises:
        ValueError: when the text is no RFC 3339 time.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f'"{text}" has no time zone')
    return moment


def seconds_between(start: str, end: datetime) -> float:
    """Seconds from the wire time `start` to `end`; negative when `end` is earlier."""
    return (end - parse_time(start)).total_seconds()
