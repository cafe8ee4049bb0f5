"""How fast requests leave this process: a token bucket that every request passes through."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace


class TokenBucket:
    """Lets `burst` requests through at once, and `rate` a second in the long run, in their order."""

    def __init__(self, rate: float, burst: int, monotonic: Callable[[], float]) -> None:
        """A `rate` of 0 sets no limit; a `burst` of 0 is read as 1."""
        self._rate = rate
        self._burst = max(1, burst)
        self._monotonic = monotonic
        self._tokens = float(self._burst)
        self._counted_at = monotonic()

    def reserve(self) -> float:
        """Take a token, of the future if need be; seconds until it is there."""
        if not self._rate:
            return 0.0
        now = self._monotonic()
        grown = self._tokens + (now - self._counted_at) * self._rate
        self._tokens = min(float(self._burst), grown) - 1
        self._counted_at = now
        return max(0.0, -self._tokens / self._rate)

    async def take(self) -> None:
        """Take a token, waiting for it if need be."""
        wait_s = self.reserve()
        if wait_s:
            await asyncio.sleep(wait_s)


def limit_requests(bucket: TokenBucket) -> aiohttp.TraceConfig:
    """An observer for `HttpApi` that makes each request wait for its token."""

    async def wait(
        _session: aiohttp.ClientSession,
        _context: SimpleNamespace,
        _params: aiohttp.TraceRequestStartParams,
    ) -> None:
        await bucket.take()

    trace = aiohttp.TraceConfig()
    trace.on_request_start.append(wait)
    return trace
