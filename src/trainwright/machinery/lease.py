"""One of several managers writes: a Lease says which, and a fence stops the one whose time is over.

The protocol is that of Go controllers (client-go's leader election on `coordination.k8s.io` Leases),
so that theirs and ours exclude each other. Others wait for the lease's duration after the last
renewal that they saw; the holder stops earlier, at the renew deadline after its last renewal, on its
own monotonic clock: nobody's wall clock counts.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp

from trainwright.api.kinds import LEASE
from trainwright.base.errors import AlreadyExists, ApiError, Conflict, NotFound, Unreachable
from trainwright.base.objects import Object, dig, resource_version_of
from trainwright.base.times import render_micro_time

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace

    from trainwright.base.times import Clock
    from trainwright.machinery.api import Api

logger = logging.getLogger(__name__)

MANAGER = "trainwright"
JITTER = 0.2
"""Candidates wait up to this much longer, so that they do not ask in step."""
RELEASE_S = 3.0
"""How long giving the Lease back may take: it runs out by itself too."""
_READS = frozenset({"GET", "HEAD", "OPTIONS"})


def steady_time() -> float:
    """Seconds that only go forward, a machine's sleep counted in where the system tells."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class LeaseLost(Unreachable):
    """This process must not write any more: another one may."""


class WriteFence:
    """Whether this process may write now. Closed at first."""

    def __init__(self, monotonic: Callable[[], float] = steady_time) -> None:
        self._monotonic = monotonic
        self._until = -math.inf

    @property
    def left_s(self) -> float:
        """Seconds that writes are still allowed for; not above 0 when they are not."""
        return self._until - self._monotonic()

    def open_until(self, moment: float) -> None:
        """Allow writes until a moment of the fence's clock."""
        self._until = moment

    def open(self) -> None:
        """Allow writes for ever: there is nobody to exclude."""
        self._until = math.inf

    def close(self) -> None:
        """Refuse writes from now on."""
        self._until = -math.inf

    def check(self) -> None:
        """Pass while writes are allowed.

        Raises:
            LeaseLost: they are not.
        """
        if self.left_s <= 0:
            raise LeaseLost("not written, for the lease is not held any more")


def fence_writes(fence: WriteFence) -> aiohttp.TraceConfig:
    """An observer for `HttpApi` that refuses writes outside of the fence.

    It looks when the request begins, again when a connection is at hand, and a last time right before
    the bytes leave: a process may be stopped for a minute between any two of these.
    """

    async def begin(
        _session: aiohttp.ClientSession,
        context: SimpleNamespace,
        params: aiohttp.TraceRequestStartParams,
    ) -> None:
        context.writes = params.method not in _READS
        if context.writes:
            fence.check()

    async def connected(
        _session: aiohttp.ClientSession, context: SimpleNamespace, _params: object
    ) -> None:
        if context.writes:
            fence.check()

    trace = aiohttp.TraceConfig()
    trace.on_request_start.append(begin)
    trace.on_connection_create_end.append(connected)
    trace.on_connection_reuseconn.append(connected)
    trace.on_request_chunk_sent.append(connected)
    return trace


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """Which Lease, who we are, and the three times."""

    namespace: str
    name: str
    identity: str
    duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0


class LeaderElector:
    """Gets a Lease, keeps it, and gives it back. `acquire`, then `hold`, then perhaps `release`."""

    def __init__(
        self,
        api: Api,
        settings: LeaseSettings,
        clock: Clock,
        fence: WriteFence,
        monotonic: Callable[[], float] = steady_time,
    ) -> None:
        """`api` must not pass through `fence`, which this opens."""
        self._api = api
        self._settings = settings
        self._clock = clock
        self._fence = fence
        self._monotonic = monotonic
        self._lease: Object = {}
        self._seen_at = -math.inf

    async def acquire(self) -> None:
        """Return once the Lease is ours; every failure is tried again."""
        told = failure = ""
        while True:
            began = self._monotonic()
            try:
                held = await self._try_acquire()
            except (ApiError, Unreachable) as error:
                held = False
                if str(error) != failure:
                    logger.warning("lease %s: %s; trying on", self._where, error)
                failure = str(error)
            if held:
                self._fence.open_until(began + self._settings.renew_deadline_s)
                logger.info("lease %s is held by %s", self._where, self._settings.identity)
                return
            holder = str(dig(self._lease, "spec", "holderIdentity", default=""))
            if holder != told:
                logger.info("lease %s is held by %s; waiting", self._where, holder or "nobody")
                told = holder
            period_s = self._settings.retry_period_s
            await asyncio.sleep(period_s * (1 + JITTER * random.random()))  # noqa: S311

    async def hold(self) -> None:
        """Renew the Lease until cancelled.

        Raises:
            LeaseLost: the renew deadline has passed, or another one holds it. The fence is closed.
        """
        while True:
            await asyncio.sleep(min(self._settings.retry_period_s, max(0.0, self._fence.left_s)))
            try:
                # A process that was stopped wakes up here: it must not even ask.
                self._fence.check()
                began = self._monotonic()
                async with asyncio.timeout(self._fence.left_s):
                    await self._renew()
                self._fence.open_until(began + self._settings.renew_deadline_s)
                self._fence.check()
            except LeaseLost:
                self._fence.close()
                raise LeaseLost(f"lease {self._where} is lost: {self._describe_loss()}") from None
            except (ApiError, Unreachable, TimeoutError) as error:
                logger.warning(
                    "lease %s is not renewed (%.1f s left): %s",
                    self._where,
                    max(0.0, self._fence.left_s),
                    error or "no answer in time",
                )

    async def release(self) -> None:
        """Give the Lease back, so that the next holder need not wait; closes the fence."""
        if self._fence.left_s <= 0:
            return
        self._fence.close()
        spec = {**self._lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
        spec["renewTime"] = render_micro_time(self._clock.now())
        try:
            async with asyncio.timeout(min(self._settings.renew_deadline_s, RELEASE_S)):
                await self._write(spec)
        except (ApiError, Unreachable, TimeoutError) as error:
            logger.warning("lease %s is not given back: %s", self._where, error or "no answer")
            return
        logger.info("lease %s is given back", self._where)

    async def _try_acquire(self) -> bool:
        settings = self._settings
        now = render_micro_time(self._clock.now())
        spec: Object = {
            "holderIdentity": settings.identity,
            "leaseDurationSeconds": max(1, math.ceil(settings.duration_s)),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": 0,
        }
        try:
            self._observe(await self._api.get(LEASE, settings.namespace, settings.name))
        except NotFound:
            self._lease = {
                "apiVersion": LEASE.api_version,
                "kind": LEASE.kind,
                "metadata": {"name": settings.name, "namespace": settings.namespace},
                "spec": spec,
            }
            try:
                self._lease = await self._api.create(LEASE, self._lease, field_manager=MANAGER)
            except AlreadyExists:
                return False
            return True
        before: Object = self._lease.get("spec") or {}
        if before.get("holderIdentity") and self._is_valid(before):
            return False
        spec["leaseTransitions"] = int(before.get("leaseTransitions") or 0) + 1
        try:
            await self._write(before | spec)
        except Conflict:
            return False
        return True

    def _observe(self, lease: Object) -> None:
        if resource_version_of(lease) != resource_version_of(self._lease):
            self._seen_at = self._monotonic()
        self._lease = lease

    def _is_valid(self, spec: Object) -> bool:
        lasts_s = float(spec.get("leaseDurationSeconds") or self._settings.duration_s)
        return self._seen_at + lasts_s > self._monotonic()

    async def _renew(self) -> None:
        spec = {**self._lease["spec"], "renewTime": render_micro_time(self._clock.now())}
        try:
            await self._write(spec)
        except Conflict:
            # Somebody else wrote: an annotation perhaps, perhaps themselves as holder.
            live = await self._api.get(LEASE, self._settings.namespace, self._settings.name)
            self._lease = live
            if dig(live, "spec", "holderIdentity") != self._settings.identity:
                raise LeaseLost("taken") from None
            await self._write({**live["spec"], "renewTime": spec["renewTime"]})
        except NotFound:
            raise LeaseLost("deleted") from None

    async def _write(self, spec: Object) -> None:
        self._lease = await self._api.replace(
            LEASE, {**self._lease, "spec": spec}, field_manager=MANAGER
        )

    @property
    def _where(self) -> str:
        return f"{self._settings.namespace}/{self._settings.name}"

    def _describe_loss(self) -> str:
        holder = dig(self._lease, "spec", "holderIdentity")
        if holder not in (None, "", self._settings.identity):
            return f"{holder} holds it"
        return f"it was not renewed within {self._settings.renew_deadline_s:g} s"
