"""How many posts of one TrainJob are taken: a bucket of tokens for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainwright.core.progress.desk import Subject

FULL_AGAIN_S = 60.0
"""A bucket that was not used for so long is full, so it need not be kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What one TrainJob may post. The public clients post once in five seconds."""

    per_second: float = 1.0
    burst: int = 20


DEFAULT_ALLOWANCE = Allowance()


class PostLimit:
    """Buckets by TrainJob. Times are seconds of any clock that only goes forward."""

    def __init__(self, allowance: Allowance = DEFAULT_ALLOWANCE) -> None:
        self._allowance = allowance
        self._buckets: dict[Subject, tuple[float, float]] = {}
        self._swept = 0.0

    def take(self, subject: Subject, now: float) -> float:
        """Count one post; 0 when it is allowed, else the seconds until one is."""
        self._sweep(now)
        rate, burst = self._allowance.per_second, self._allowance.burst
        tokens, at = self._buckets.get(subject, (float(burst), now))
        tokens = min(burst, tokens + (now - at) * rate)
        if tokens < 1:
            self._buckets[subject] = (tokens, now)
            return (1 - tokens) / rate
        self._buckets[subject] = (tokens - 1, now)
        return 0.0

    def _sweep(self, now: float) -> None:
        if now - self._swept < FULL_AGAIN_S:
            return
        self._swept = now
        self._buckets = {s: b for s, b in self._buckets.items() if now - b[1] < FULL_AGAIN_S}
