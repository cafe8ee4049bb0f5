"""Which report is written when: the newest of each TrainJob, paced, first and last ones first.

Trainings report far more often than anybody looks. Each TrainJob is written at most every ten
seconds and all together at a bounded rate; the first report and the one at 100 % do not wait for
their turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.core.progress.report import COMPLETE_PERCENT

if TYPE_CHECKING:
    from trainwright.core.progress.report import TrainerStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often reports are written."""

    job_interval_s: float = 10.0
    """Between two writes of one TrainJob."""
    writes_per_second: float = 50.0
    """Of all TrainJobs together."""
    retry_s: float = 1.0
    """After a write that the server did not take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The TrainJob that a report is about; another one of the name is not meant."""

    namespace: str
    name: str
    uid: str


@dataclass(slots=True)
class _Waiting:
    status: TrainerStatus
    due: float


DEFAULT_PACE = Pace()


class Desk:
    """Reports that wait to be written. Times are seconds of any clock that only goes forward."""

    def __init__(self, pace: Pace = DEFAULT_PACE) -> None:
        self._pace = pace
        self._waiting: dict[Subject, _Waiting] = {}
        self._written: dict[Subject, float] = {}
        self._free_at = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, subject: Subject, status: TrainerStatus, now: float) -> None:
        """Take a report in; it replaces one of the same TrainJob that was not written yet."""
        last = self._written.get(subject)
        if last is None or status.progress_percentage == COMPLETE_PERCENT:
            due = now
        else:
            due = max(now, last + self._pace.job_interval_s)
        waiting = self._waiting.get(subject)
        if waiting is not None:
            due = min(due, waiting.due)
        self._waiting[subject] = _Waiting(status, due)

    def put_back(self, subject: Subject, status: TrainerStatus, now: float) -> None:
        """A write failed: try again in a while, unless a newer report has come in."""
        if subject not in self._waiting:
            self._waiting[subject] = _Waiting(status, now + self._pace.retry_s)

    def take(
        self, now: float, *, all_at_once: bool = False
    ) -> tuple[Subject, TrainerStatus] | None:
        """The report to write now, the longest due first; None when none is due.

        Args:
            now: the time.
            all_at_once: do not wait for anything: what is left at the end.
        """
        if not self._waiting:
            return None
        subject = min(self._waiting, key=lambda s: self._waiting[s].due)
        if not all_at_once and max(self._waiting[subject].due, self._free_at) > now:
            return None
        self._free_at = now + 1 / self._pace.writes_per_second
        self._written[subject] = now
        return subject, self._waiting.pop(subject).status

    def find_wait_s(self, now: float) -> float | None:
        """Seconds until `take` has something; None while nothing waits."""
        if not self._waiting:
            return None
        due = min(waiting.due for waiting in self._waiting.values())
        return max(due, self._free_at) - now

    def forget(self, subject: Subject) -> None:
        """The TrainJob is gone."""
        self._waiting.pop(subject, None)
        self._written.pop(subject, None)

    def forget_before(self, moment: float) -> None:
        """Drop what is remembered of TrainJobs that were last written before `moment`."""
        self._written = {s: t for s, t in self._written.items() if t >= moment}
