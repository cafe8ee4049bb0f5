"""One pass over a Job."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from trainwright.api.kinds import JOB, POD
from trainwright.base.objects import (
    dig,
    find_condition,
    is_condition_true,
    is_deleting,
    name_of,
)
from trainwright.base.times import render_time, seconds_between
from trainwright.core.job.accounting import build_release, count_pods, plan_orphans
from trainwright.core.job.backoff import BackoffSettings, remember_ends
from trainwright.core.job.ending import (
    FAILURE_TARGET,
    SUCCESS_CRITERIA_MET,
    find_completion,
    find_deadline_s,
    find_verdict,
)
from trainwright.core.job.indexes import render_indexes
from trainwright.core.job.observed import (
    is_finished,
    is_indexed,
    is_managed_here,
    is_ready,
    is_suspended,
    split_pods,
)
from trainwright.core.job.scaling import (
    find_excess,
    plan_creates,
    plan_stop,
    render_created,
    render_deleted,
)
from trainwright.core.plan import Event, Plan, build_delete, build_status_patch

if TYPE_CHECKING:
    from datetime import datetime

    from trainwright.base.objects import Object
    from trainwright.core.job.accounting import Accounts
    from trainwright.core.job.ending import Verdict
    from trainwright.core.job.memory import JobMemory
    from trainwright.core.job.observed import ObservedJob, PodClasses
    from trainwright.core.plan import Action

DEFAULT_BACKOFF = BackoffSettings()


def plan_job(
    observed: ObservedJob,
    now: datetime,
    *,
    memory: JobMemory,
    settings: BackoffSettings = DEFAULT_BACKOFF,
) -> Plan:
    """Decide one pass over a Job.

    Args:
        observed: the Job and its pods.
        now: the time.
        memory: what earlier passes over this very Job (by uid) remember; it is updated.
        settings: delays of replacement pods.

    Source: contract/jobset.md 2.3 to 2.6. Differs: counters move one pass after the finalizer is
    seen to be gone, so they need no memory of writes.
    """
    job = observed.job
    if is_deleting(job):
        return Plan(actions=plan_orphans(observed.pods))
    if not is_managed_here(job):
        return Plan()
    if is_finished(job):
        return _plan_finished(observed, now)
    classes = split_pods(job, observed.pods)
    memory.observe({name_of(pod) for pod in observed.pods})
    remember_ends(job, classes, memory)
    accounts = count_pods(observed, classes)
    verdict = find_verdict(observed, classes, accounts, now)
    actions: list[Action] = [build_release(pod) for pod in accounts.release]
    events: list[Event] = []
    wait_s: float | None = None
    if verdict is not None:
        stopped, more = _plan_ending(verdict, classes)
    elif is_suspended(job):
        stopped, more = list(classes.active), plan_stop(classes.active)
    else:
        stopped = find_excess(job, classes, accounts)
        more = plan_stop(stopped)
        if not stopped:
            creates, wait_s = plan_creates(
                job, observed.pods, classes, accounts,
                memory=memory, settings=settings, now=now,
            )  # fmt: skip
            more = list(creates)
            events += render_created(creates)
    events += render_deleted(stopped)
    actions += more
    if verdict is None:
        verdict = find_completion(job, classes, accounts)
    status, told = _build_status(job, classes, accounts, verdict, render_time(now))
    waits = [w for w in (wait_s, find_deadline_s(job, now) if verdict is None else None) if w]
    return Plan(
        actions=tuple(actions),
        status=build_status_patch(JOB, job, status),
        events=(*events, *told),
        requeue_after_s=min(waits, default=None),
    )


def _plan_finished(observed: ObservedJob, now: datetime) -> Plan:
    """Let go of the pods, stop what still runs, and go when the time to live is over."""
    job = observed.job
    classes = split_pods(job, observed.pods)
    actions: list[Action] = [
        *plan_orphans(observed.pods),
        *(build_delete(POD, pod) for pod in classes.active),
    ]
    ttl_s = dig(job, "spec", "ttlSecondsAfterFinished")
    if ttl_s is None:
        return Plan(actions=tuple(actions))
    ended = find_condition(job, "Complete" if is_condition_true(job, "Complete") else "Failed")
    left_s = ttl_s - seconds_between((ended or {})["lastTransitionTime"], now)
    if left_s > 0:
        return Plan(actions=tuple(actions), requeue_after_s=left_s)
    actions.append(build_delete(JOB, job, "Foreground", as_seen=True))
    return Plan(actions=tuple(actions))


def _plan_ending(verdict: Verdict, classes: PodClasses) -> tuple[list[Object], list[Action]]:
    """Stop the active pods: they count as failed when the Job fails, not when it succeeds."""
    stopped = list(classes.active)
    if verdict.type == SUCCESS_CRITERIA_MET:
        return stopped, plan_stop(stopped)
    return stopped, [build_delete(POD, pod) for pod in stopped]


def _build_status(
    job: Object, classes: PodClasses, accounts: Accounts, verdict: Verdict | None, now: str
) -> tuple[Object, list[Event]]:
    """The status after this pass, and the events of its condition changes."""
    status: Object = copy.deepcopy(dict(job.get("status") or {}))
    conditions = _Conditions(status, now)
    uncounted = {
        name: list(uids)
        for name, uids in (
            ("succeeded", accounts.uncounted_succeeded),
            ("failed", accounts.uncounted_failed),
        )
        if uids
    }
    counters: dict[str, Any] = {
        "active": len(classes.active),
        "succeeded": (accounts.succeeded(job) if is_indexed(job) else accounts.succeeded_counted),
        "failed": accounts.failed_counted,
    }
    for field, count in counters.items():
        if count:
            status[field] = count
        else:
            status.pop(field, None)
    status["ready"] = sum(map(is_ready, classes.active))
    status["terminating"] = len(classes.terminating)
    status["uncountedTerminatedPods"] = uncounted
    if is_indexed(job):
        status["completedIndexes"] = render_indexes(accounts.completed)
        if not accounts.completed:
            del status["completedIndexes"]
    if dig(job, "spec", "backoffLimitPerIndex") is not None:
        status["failedIndexes"] = render_indexes(accounts.failed_indexes)
    if verdict is None:
        _set_suspended(job, status, conditions, now)
    else:
        _set_ending(status, conditions, verdict, _is_over(classes, accounts), now)
    if conditions.items:
        status["conditions"] = conditions.items
    return status, conditions.events


def _is_over(classes: PodClasses, accounts: Accounts) -> bool:
    """Whether every pod has ended and is counted."""
    uncounted = accounts.uncounted_failed or accounts.uncounted_succeeded
    return not (classes.active or classes.terminating or uncounted)


def _set_suspended(job: Object, status: Object, conditions: _Conditions, now: str) -> None:
    if is_suspended(job):
        status.pop("startTime", None)
        if conditions.set("Suspended", True, "JobSuspended", "Job suspended"):
            conditions.tell("Normal", "Suspended", "Job suspended")
        return
    status.setdefault("startTime", now)
    if is_condition_true(job, "Suspended"):
        conditions.set("Suspended", False, "JobResumed", "Job resumed")
        conditions.tell("Normal", "Resumed", "Job resumed")
        status["startTime"] = now


def _set_ending(
    status: Object, conditions: _Conditions, verdict: Verdict, over: bool, now: str
) -> None:
    conditions.set(verdict.type, True, verdict.reason, verdict.message)
    if not over:
        return
    if verdict.type == FAILURE_TARGET:
        conditions.set("Failed", True, verdict.reason, verdict.message)
        conditions.tell("Warning", verdict.reason, verdict.message)
    else:
        conditions.set("Complete", True, verdict.reason, verdict.message)
        conditions.tell("Normal", "Completed", "Job completed")
        status["completionTime"] = now


class _Conditions:
    """The Job's conditions, changed in place of a copy, and the events to tell."""

    def __init__(self, status: Object, now: str) -> None:
        self.items: list[Object] = list(status.get("conditions") or ())
        self.events: list[Event] = []
        self._now = now

    def set(self, kind: str, value: bool, reason: str, message: str) -> bool:
        """Set a condition; says whether its value changed."""
        wanted = "True" if value else "False"
        at = next((i for i, c in enumerate(self.items) if c["type"] == kind), None)
        if at is not None and self.items[at]["status"] == wanted:
            return False
        condition = {
            "type": kind,
            "status": wanted,
            "lastProbeTime": self._now,
            "lastTransitionTime": self._now,
            "reason": reason,
            "message": message,
        }
        if at is None:
            self.items.append(condition)
        else:
            self.items[at] = condition
        return True

    def tell(self, kind: Any, reason: str, note: str) -> None:
        """An event about the Job."""
        self.events.append(Event(type=kind, reason=reason, note=note))
