"""A JobSet's status: counters per replicated job, conditions, and the event of each change."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Literal

from trainwright.api.conditions import (
    JOBSET_COMPLETED,
    JOBSET_FAILED,
    JOBSET_RESTARTING,
    JOBSET_STARTUP_COMPLETED,
    JOBSET_STARTUP_IN_PROGRESS,
)
from trainwright.api.kinds import JOBSET
from trainwright.base.objects import dig, name_of
from trainwright.base.times import render_time
from trainwright.core.jobset.names import replicated_jobs_of
from trainwright.core.jobset.observed import replicated_job_of, restarts_of
from trainwright.core.plan import Event, Patch, build_status_patch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from trainwright.base.objects import Object, ObjectView
    from trainwright.core.jobset.observed import Buckets

_OPPOSITE = {
    JOBSET_STARTUP_IN_PROGRESS: JOBSET_STARTUP_COMPLETED,
    JOBSET_STARTUP_COMPLETED: JOBSET_STARTUP_IN_PROGRESS,
}


class StatusDraft:
    """The status that this pass will write, and the events that go with it."""

    def __init__(self, jobset: Object, now: datetime) -> None:
        self._jobset = jobset
        self._now = render_time(now)
        self.status: Object = copy.deepcopy(dict(jobset.get("status") or {}))
        self.status["restarts"] = restarts_of(jobset)
        self.events: list[Event] = []

    def set_condition(self, kind: str, value: bool, reason: str, message: str) -> None:
        """Set a condition; a False one only replaces, and the time moves only with the value."""
        conditions: list[Object] = self.status.get("conditions") or []
        wanted = "True" if value else "False"
        at = next((i for i, c in enumerate(conditions) if c["type"] == kind), None)
        if at is None and not value:
            return
        condition = {
            "type": kind,
            "status": wanted,
            "reason": reason,
            "message": message,
            "lastTransitionTime": self._now,
        }
        if at is None:
            conditions.append(condition)
        else:
            before = conditions[at]
            if before["status"] == wanted:
                condition["lastTransitionTime"] = before["lastTransitionTime"]
            if condition == before:
                return
            conditions[at] = condition
        self._flip_opposite(conditions, kind, value)
        self.status["conditions"] = conditions
        warns = value and kind in (JOBSET_FAILED, JOBSET_RESTARTING)
        self.add_event("Warning" if warns else "Normal", reason, message)

    @staticmethod
    def _flip_opposite(conditions: list[Object], kind: str, value: bool) -> None:
        opposite = _OPPOSITE.get(kind)
        for i, condition in enumerate(conditions):
            if value and condition["type"] == opposite and condition["status"] == "True":
                conditions[i] = condition | {"status": "False"}

    def add_event(self, kind: Literal["Normal", "Warning"], reason: str, note: str) -> None:
        """An event about the JobSet, sent after the status."""
        self.events.append(Event(type=kind, reason=reason, note=note))

    def complete(self) -> None:
        """Terminal success."""
        self.set_condition(
            JOBSET_COMPLETED, True, "AllJobsCompleted", "jobset completed successfully"
        )
        self.set_condition(JOBSET_RESTARTING, False, "JobSetCompleted", "jobset completed")
        self.status["terminalState"] = JOBSET_COMPLETED

    def fail(self, reason: str, message: str) -> None:
        """Terminal failure."""
        self.set_condition(JOBSET_FAILED, True, reason, message)
        self.set_condition(JOBSET_RESTARTING, False, "JobSetFailed", "jobset failed")
        self.status["terminalState"] = JOBSET_FAILED

    def build_patch(self) -> Patch | None:
        """The status write, if anything changed."""
        return build_status_patch(JOBSET, self._jobset, self.status)


def reduce_replicated_jobs(jobset: ObjectView, buckets: Buckets) -> list[dict[str, Any]]:
    """`status.replicatedJobsStatus`: how many Jobs are how far, sorted by name descending.

    Source: contract/jobset.md 1.13; Jobs of an earlier attempt count nowhere.
    """
    rows = {
        job["name"]: {
            "name": job["name"],
            "ready": 0,
            "succeeded": 0,
            "failed": 0,
            "active": 0,
            "suspended": 0,
        }
        for job in replicated_jobs_of(jobset)
    }
    for bucket, field in ((buckets.successful, "succeeded"), (buckets.failed, "failed")):
        for job in bucket:
            if row := rows.get(replicated_job_of(job)):
                row[field] += 1
    for job in buckets.active:
        if row := rows.get(replicated_job_of(job)):
            row["ready"] += is_job_ready(job)
            row["active"] += dig(job, "status", "active", default=0) > 0
            row["suspended"] += bool(dig(job, "spec", "suspend", default=False))
    return sorted(rows.values(), key=lambda row: str(row["name"]), reverse=True)


def is_job_ready(job: ObjectView) -> bool:
    """Whether enough of the Job's pods are ready or done."""
    parallelism = dig(job, "spec", "parallelism", default=1)
    expected = min(parallelism, dig(job, "spec", "completions", default=parallelism))
    done = dig(job, "status", "succeeded", default=0) + dig(job, "status", "ready", default=0)
    return bool(done >= expected)


def rows_by_name(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """`replicatedJobsStatus` by the replicated job's name."""
    return {row["name"]: row for row in status.get("replicatedJobsStatus") or ()}


def find_terminal_time(jobset: ObjectView) -> str | None:
    """When the JobSet ended, or None while it has not."""
    for condition in dig(jobset, "status", "conditions", default=()):
        if condition["type"] in (JOBSET_COMPLETED, JOBSET_FAILED) and condition["status"] == "True":
            return str(condition["lastTransitionTime"])
    return None


def describe(jobset: ObjectView) -> str:
    """`JobSet namespace/name`, for messages."""
    return f"JobSet {dig(jobset, 'metadata', 'namespace', default='')}/{name_of(jobset)}"
