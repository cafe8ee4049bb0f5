"""Holding back status writes that only count pods: a big job would else write once for each pod."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trainwright.base.objects import dig

if TYPE_CHECKING:
    from trainwright.base.objects import Object
    from trainwright.core.plan import Plan

COUNTS_INTERVAL_S = 1.0
"""Changes of `jobsStatus` alone are written at most this often for one TrainJob."""


def hold_back_counts(plan: Plan, trainjob: Object, since_s: float | None) -> Plan:
    """The plan without its status write when that can wait, to be looked at again in time.

    Conditions, the first and the last active pod, and suspended TrainJobs never wait: queues decide
    by them.

    Args:
        plan: what was decided.
        trainjob: as observed.
        since_s: seconds since the last status write of this TrainJob; None when there was none.
    """
    if plan.status is None or since_s is None or since_s >= COUNTS_INTERVAL_S:
        return plan
    status = plan.status.patch["status"]
    if set(status) != {"jobsStatus"} or dig(trainjob, "spec", "suspend"):
        return plan
    before = dig(trainjob, "status", "jobsStatus", default=())
    if _has_active(before) != _has_active(status["jobsStatus"] or ()):
        return plan
    wait_s = COUNTS_INTERVAL_S - since_s
    due_s = wait_s if plan.requeue_after_s is None else min(wait_s, plan.requeue_after_s)
    return replace(plan, status=None, requeue_after_s=due_s)


def _has_active(jobs: object) -> bool:
    return isinstance(jobs, list) and any((job.get("active") or 0) > 0 for job in jobs)
