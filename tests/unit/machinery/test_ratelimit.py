from __future__ import annotations

import pytest

from trainwright.machinery.ratelimit import TokenBucket


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_goes_through_and_the_rest_in_step() -> None:
    bucket = TokenBucket(10, 3, Time())
    waits = [bucket.reserve() for _ in range(6)]
    assert waits == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3])


def test_a_pause_fills_the_bucket_no_further_than_its_burst() -> None:
    time = Time()
    bucket = TokenBucket(10, 2, time)
    for _ in range(4):
        bucket.reserve()
    time.now += 0.3  # two tokens were owed: one is there
    assert [bucket.reserve(), bucket.reserve()] == pytest.approx([0, 0.1])
    time.now += 3600
    assert [bucket.reserve() for _ in range(3)] == pytest.approx([0, 0, 0.1])


@pytest.mark.parametrize(("rate", "burst", "waits"), [(0, 0, [0, 0]), (2, 0, [0, 0.5])])
def test_nothing_sets_no_limit_and_no_burst_is_one(
    rate: float, burst: int, waits: list[float]
) -> None:
    bucket = TokenBucket(rate, burst, Time())
    assert [bucket.reserve(), bucket.reserve()] == pytest.approx(waits)
