from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from trainwright.machinery.clock import SystemClock
from trainwright.machinery.workqueue import BACKOFF_CAP_S, Key, WorkQueue


def make_queue() -> WorkQueue:
    return WorkQueue(SystemClock())


async def take_all(queue: WorkQueue) -> list[Key]:
    keys = []
    while len(queue):
        key = await queue.take()
        assert key is not None
        queue.done(key)
        keys.append(key)
    return keys


async def test_a_key_that_waits_is_not_added_twice() -> None:
    queue = make_queue()
    queue.add(Key("a", "x"))
    queue.add(Key("a", "x"))
    assert await take_all(queue) == [Key("a", "x")]


async def test_a_key_added_while_it_is_worked_on_runs_again_afterwards() -> None:
    queue = make_queue()
    queue.add(Key("a", "x"))
    key = await queue.take()
    queue.add(Key("a", "x"))
    assert len(queue) == 0
    assert key is not None
    queue.done(key)
    assert await take_all(queue) == [key]


async def test_namespaces_take_turns() -> None:
    queue = make_queue()
    for name in ("1", "2", "3"):
        queue.add(Key("busy", name))
    queue.add(Key("calm", "1"))
    assert [str(key) for key in await take_all(queue)] == ["busy/1", "calm/1", "busy/2", "busy/3"]


async def test_changes_come_before_the_initial_list() -> None:
    queue = make_queue()
    queue.add(Key("a", "listed"), urgent=False)
    queue.add(Key("a", "changed"))
    assert [key.name for key in await take_all(queue)] == ["changed", "listed"]


async def test_take_waits_for_the_next_key() -> None:
    queue = make_queue()
    taker = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    queue.add(Key("a", "x"))
    assert await taker == Key("a", "x")


async def test_close_ends_every_take() -> None:
    queue = make_queue()
    takers = [asyncio.create_task(queue.take()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.close()
    assert await asyncio.gather(*takers) == [None, None, None]


async def test_back_off_doubles_up_to_its_cap_and_starts_anew_after_success() -> None:
    queue = make_queue()
    delays = [queue.add_failed(Key("a", "x")) for _ in range(20)]
    assert delays[:3] == [0.05, 0.1, 0.2]
    assert delays[-1] == BACKOFF_CAP_S
    queue.forget(Key("a", "x"))
    assert queue.add_failed(Key("a", "x")) == 0.05
    queue.close()


async def test_a_key_that_is_due_later_comes_by_itself() -> None:
    queue = make_queue()
    queue.add_after(Key("a", "x"), 0.01)
    assert await queue.take() == Key("a", "x")


async def test_of_two_due_times_the_earlier_counts() -> None:
    class Clock(SystemClock):
        moment = datetime(2026, 1, 1, tzinfo=UTC)

        def now(self) -> datetime:
            return self.moment

    clock = Clock()
    queue = WorkQueue(clock)
    queue.add_after(Key("a", "x"), 3600)
    queue.add_after(Key("a", "x"), 5)
    queue.add_after(Key("a", "x"), 60)
    clock.moment += timedelta(seconds=6)
    queue._release_due()
    assert await take_all(queue) == [Key("a", "x")]
    clock.moment += timedelta(hours=2)
    queue._release_due()
    assert len(queue) == 0
    queue.close()


async def test_a_change_moves_a_listed_key_to_the_front_and_runs_it_once() -> None:
    queue = make_queue()
    for name in ("one", "two", "three"):
        queue.add(Key("a", name), urgent=False)
    queue.add(Key("a", "three"))
    queue.add(Key("a", "one"), urgent=False)
    assert len(queue) == 3
    assert [key.name for key in await take_all(queue)] == ["three", "one", "two"]


async def test_a_key_that_runs_comes_back_in_the_lane_that_it_was_added_to() -> None:
    queue = make_queue()
    queue.add(Key("a", "x"))
    key = await queue.take()
    assert key is not None
    queue.add(key, urgent=False)
    queue.add(Key("a", "changed"))
    queue.done(key)
    assert [key.name for key in await take_all(queue)] == ["changed", "x"]


async def test_a_back_off_does_not_hang_on_the_wall_clock() -> None:
    class Clock(SystemClock):
        moment = datetime(2026, 1, 1, tzinfo=UTC)
        passed = 100.0

        def now(self) -> datetime:
            return self.moment

        def monotonic(self) -> float:
            return self.passed

    clock = Clock()
    queue = WorkQueue(clock)
    queue.add_failed(Key("a", "x"))
    clock.moment -= timedelta(hours=5)
    clock.passed += 0.01
    queue._release_due()
    assert len(queue) == 0
    clock.passed += 1
    queue._release_due()
    assert await take_all(queue) == [Key("a", "x")]
    queue.close()
