"""The machine's own clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """Wall clock and monotonic clock of this machine."""

    def now(self) -> datetime:
        """The wall clock in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that only go forward."""
        return time.monotonic()
