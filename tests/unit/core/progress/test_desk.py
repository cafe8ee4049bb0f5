"""When reports are written: paced, newest only, first and last ones at once, none lost."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.core.progress.desk import Desk, Pace, Subject
from trainwright.core.progress.report import TrainerStatus

PACE = Pace(job_interval_s=10, writes_per_second=50, retry_s=1)


def subject(name: str) -> Subject:
    return Subject(namespace="a", name=name, uid=f"uid-{name}")


def at(percent: int) -> TrainerStatus:
    return TrainerStatus(progress_percentage=percent)


def test_the_first_report_goes_at_once_and_the_next_ones_wait_their_turn() -> None:
    desk = Desk(PACE)
    desk.put(subject("x"), at(1), 100.0)
    assert desk.take(100.0) == (subject("x"), at(1))
    for second in range(1, 10):
        desk.put(subject("x"), at(second + 1), 100.0 + second)
        assert desk.take(100.0 + second) is None
    assert desk.find_wait_s(109.0) == 1.0
    assert desk.take(110.0) == (subject("x"), at(10))
    assert desk.find_wait_s(110.0) is None


def test_the_last_report_does_not_wait() -> None:
    desk = Desk(PACE)
    desk.put(subject("x"), at(1), 0.0)
    desk.take(0.0)
    desk.put(subject("x"), at(100), 1.0)
    assert desk.take(1.0) == (subject("x"), at(100))


def test_all_jobs_together_keep_to_the_rate() -> None:
    desk = Desk(PACE)
    for number in range(3):
        desk.put(subject(str(number)), at(1), 0.0)
    assert desk.take(0.0) is not None
    assert desk.take(0.01) is None
    assert desk.take(0.02) is not None
    assert desk.find_wait_s(0.03) is not None


def test_a_failed_write_is_tried_again_unless_there_is_news() -> None:
    desk = Desk(PACE)
    desk.put(subject("x"), at(1), 0.0)
    taken = desk.take(0.0)
    assert taken is not None
    desk.put_back(*taken, 0.0)
    assert desk.take(0.5) is None
    assert desk.take(1.0) == taken
    desk.put(subject("x"), at(2), 1.5)
    desk.put_back(*taken, 1.5)
    assert desk.take(11.0) == (subject("x"), at(2))


def test_a_job_of_the_same_name_is_another_one() -> None:
    desk = Desk(PACE)
    desk.put(subject("x"), at(1), 0.0)
    desk.take(0.0)
    other = Subject(namespace="a", name="x", uid="another")
    desk.put(other, at(3), 1.0)
    assert desk.take(1.0) == (other, at(3))


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 100), st.floats(0.0, 7.0)),
        max_size=40,
    )
)
def test_the_newest_report_of_every_job_is_written_in_the_end(
    posts: list[tuple[int, int, float]],
) -> None:
    desk, now = Desk(PACE), 0.0
    newest: dict[Subject, TrainerStatus] = {}
    written: dict[Subject, TrainerStatus] = {}
    for number, percent, pause in posts:
        now += pause
        desk.put(subject(str(number)), at(percent), now)
        newest[subject(str(number))] = at(percent)
        while taken := desk.take(now):
            written[taken[0]] = taken[1]
    while taken := desk.take(now, all_at_once=True):
        written[taken[0]] = taken[1]
    assert written == newest
    assert len(desk) == 0
