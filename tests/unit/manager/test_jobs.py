from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from trainwright.machinery.api import WatchType
from trainwright.machinery.metrics import Metrics
from trainwright.manager.jobs import JobMetrics


class Noon:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, 12, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


def make_job(*, uid: str = "u", **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"uid": uid, "name": uid, "creationTimestamp": "2026-01-01T11:59:30Z"},
        "spec": {},
        "status": status,
    }


def failed(reason: str) -> dict[str, Any]:
    return {"conditions": [{"type": "Failed", "status": "True", "reason": reason}]}


RUNNING: dict[str, Any] = {"jobsStatus": [{"name": "node", "ready": 1}]}


class Table:
    def __init__(self) -> None:
        self.metrics = Metrics()
        self.leads = True
        self.jobs = JobMetrics(self.metrics, Noon(), lambda: self.leads)

    def value(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0

    def change(self, old: dict[str, Any] | None, new: dict[str, Any]) -> None:
        self.jobs.observe(WatchType.ADDED if old is None else WatchType.MODIFIED, old, new)

    def state(self, state: str) -> float:
        return self.value("trainwright_trainjobs", state=state)


def test_jobs_are_counted_by_state() -> None:
    table = Table()
    pending, running = make_job(), make_job(**RUNNING)
    table.change(None, pending)
    table.change(None, make_job(uid="other", **failed("FailedJobs")))
    assert (table.state("Pending"), table.state("Failed")) == (1, 1)
    table.change(pending, running)
    assert (table.state("Pending"), table.state("Running")) == (0, 1)
    table.jobs.observe(WatchType.DELETED, running, running)
    assert table.state("Running") == 0
    table.leads = False
    assert table.state("Failed") == 0


def test_a_start_is_timed_once() -> None:
    table = Table()
    pending, running = make_job(), make_job(**RUNNING)
    for old, new in ((None, pending), (pending, running), (running, pending), (pending, running)):
        table.change(old, new)
    assert table.value("trainwright_trainjob_start_seconds_count") == 1
    assert table.value("trainwright_trainjob_start_seconds_sum") == 30


def test_what_happened_before_us_is_no_news() -> None:
    table = Table()
    table.change(None, make_job(**RUNNING))
    table.change(None, make_job(uid="b", **failed("FailedJobs")))
    assert table.value("trainwright_trainjob_start_seconds_count") == 0
    assert table.value("trainwright_trainjob_failures_total", reason="FailedJobs") == 0


def test_failures_have_few_reasons() -> None:
    table = Table()
    for number, reason in enumerate(("FailedJobs", "DeadlineExceeded", "My job 17 broke", "zz")):
        before = make_job(uid=str(number))
        table.change(None, before)
        table.change(before, make_job(uid=str(number), **failed(reason)))
    found = {
        reason: table.value("trainwright_trainjob_failures_total", reason=reason)
        for reason in ("FailedJobs", "DeadlineExceeded", "Other")
    }
    assert found == {"FailedJobs": 1, "DeadlineExceeded": 1, "Other": 2}
