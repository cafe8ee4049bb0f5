"""Two candidates for one Lease over a real registry, on a clock of the test's own."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from trainwright.api.kinds import LEASE
from trainwright.base.errors import Unreachable
from trainwright.machinery.api import DeleteOptions, PatchType
from trainwright.machinery.clock import SystemClock
from trainwright.machinery.lease import LeaderElector, LeaseLost, LeaseSettings, WriteFence
from trainwright.server.inprocess import InProcessApi
from trainwright.server.registry import Registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

LIMIT_S = 30


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class CutApi:
    """An API server that can be out of reach."""

    def __init__(self, api: InProcessApi) -> None:
        self._api = api
        self.is_cut = False
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            if self.is_cut:
                raise Unreachable("cut")
            return await getattr(self._api, name)(*arguments, **options)

        return call


class Candidate:
    def __init__(self, api: InProcessApi, identity: str, time: Time) -> None:
        self.api: Any = CutApi(api)
        self.fence = WriteFence(time)
        settings = LeaseSettings(
            namespace="default",
            name="x",
            identity=identity,
            duration_s=15,
            renew_deadline_s=10,
            retry_period_s=0.01,  # of the loop's own clock, so that nobody waits
        )
        self.elector = LeaderElector(self.api, settings, SystemClock(), self.fence, time)


@asynccontextmanager
async def open_api(folder: Path) -> AsyncIterator[InProcessApi]:
    registry = await Registry.open(folder / "store", SystemClock())
    try:
        yield InProcessApi(registry)
    finally:
        await registry.close()


async def holder(api: InProcessApi) -> Any:
    return (await api.get(LEASE, "default", "x"))["spec"]


async def wait_tries(candidate: Candidate, count: int = 3) -> None:
    seen: int = candidate.api.calls
    async with asyncio.timeout(LIMIT_S):
        while candidate.api.calls < seen + count:  # noqa: ASYNC110 - of a stand-in that has none
            await asyncio.sleep(0.005)


async def test_the_lease_goes_to_the_next_when_it_is_given_back(tmp_path: Path) -> None:
    time = Time()
    async with open_api(tmp_path) as api:
        first, second = Candidate(api, "first", time), Candidate(api, "second", time)
        assert first.fence.left_s <= 0
        await first.elector.acquire()
        assert first.fence.left_s == 10
        waiting = asyncio.create_task(second.elector.acquire())
        await wait_tries(second)
        assert not waiting.done()
        assert second.fence.left_s <= 0
        await first.elector.release()
        assert first.fence.left_s <= 0
        await asyncio.wait_for(waiting, LIMIT_S)
        spec = await holder(api)
        assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("second", 1)
        assert spec["leaseDurationSeconds"] == 15


async def test_who_is_silent_for_the_lease_s_time_is_replaced(tmp_path: Path) -> None:
    time = Time()
    async with open_api(tmp_path) as api:
        first, second = Candidate(api, "first", time), Candidate(api, "second", time)
        await first.elector.acquire()
        waiting = asyncio.create_task(second.elector.acquire())
        await wait_tries(second)
        time.now = 14.9
        await wait_tries(second)
        assert not waiting.done()
        time.now = 15.1
        await asyncio.wait_for(waiting, LIMIT_S)
        # The first one wakes up: it must not renew, nor give back what is not its own.
        calls = first.api.calls
        with pytest.raises(LeaseLost):
            await first.elector.hold()
        await first.elector.release()
        assert first.api.calls == calls
        assert (await holder(api))["holderIdentity"] == "second"


async def test_a_holder_renews_and_stops_at_its_deadline(tmp_path: Path) -> None:
    time = Time()
    async with open_api(tmp_path) as api:
        first = Candidate(api, "first", time)
        await first.elector.acquire()
        holding = asyncio.create_task(first.elector.hold())
        time.now = 9.0
        await wait_tries(first)
        assert first.fence.left_s == 10
        first.api.is_cut = True
        time.now = 18.9
        await wait_tries(first)
        assert not holding.done()
        first.fence.check()
        time.now = 19.1
        with pytest.raises(LeaseLost, match="not renewed within 10 s"):
            await asyncio.wait_for(holding, LIMIT_S)
        with pytest.raises(LeaseLost):
            first.fence.check()


async def test_a_strange_write_to_the_lease_does_not_end_it_but_a_new_holder_does(
    tmp_path: Path,
) -> None:
    time = Time()
    async with open_api(tmp_path) as api:
        first = Candidate(api, "first", time)
        await first.elector.acquire()
        holding = asyncio.create_task(first.elector.hold())

        async def patch(body: dict[str, Any]) -> None:
            await api.patch(LEASE, "default", "x", body, type=PatchType.MERGE, field_manager="test")

        await patch({"metadata": {"annotations": {"a": "b"}}})
        await wait_tries(first, 6)
        assert not holding.done()
        await patch({"spec": {"holderIdentity": "thief"}})
        with pytest.raises(LeaseLost, match="thief holds it"):
            await asyncio.wait_for(holding, LIMIT_S)


async def test_a_lease_that_is_deleted_is_lost(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        first = Candidate(api, "first", Time())
        await first.elector.acquire()
        holding = asyncio.create_task(first.elector.hold())
        await api.delete(LEASE, "default", "x", DeleteOptions())
        with pytest.raises(LeaseLost):
            await asyncio.wait_for(holding, LIMIT_S)
