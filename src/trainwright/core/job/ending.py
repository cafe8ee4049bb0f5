"""Whether, why and how a Job ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.base.objects import dig, find_condition, is_condition_true
from trainwright.base.times import seconds_between
from trainwright.core.job.observed import is_suspended, is_tracked, phase_of
from trainwright.core.job.policies import FAIL_JOB, find_failure_match, find_success_rule

if TYPE_CHECKING:
    from datetime import datetime

    from trainwright.base.objects import ObjectView
    from trainwright.core.job.accounting import Accounts
    from trainwright.core.job.observed import ObservedJob, PodClasses

FAILURE_TARGET, SUCCESS_CRITERIA_MET = "FailureTarget", "SuccessCriteriaMet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The Job is to end: `type` is FailureTarget or SuccessCriteriaMet."""

    type: str
    reason: str
    message: str


def find_verdict(
    observed: ObservedJob, classes: PodClasses, accounts: Accounts, now: datetime
) -> Verdict | None:
    """The first reason to end the Job.

    Source: contract/jobset.md 2.3 step 4, in its order.
    """
    job = observed.job
    for existing in (SUCCESS_CRITERIA_MET, FAILURE_TARGET):
        if is_condition_true(job, existing):
            condition = find_condition(job, existing) or {}
            return Verdict(type=existing, reason=condition["reason"], message=condition["message"])
    return (
        _find_policy_failure(job, classes)
        or _find_backoff_failure(job, classes, accounts)
        or _find_deadline_failure(job, now)
        or _find_index_failure(job, accounts)
        or _find_success(job, accounts)
    )


def find_completion(job: ObjectView, classes: PodClasses, accounts: Accounts) -> Verdict | None:
    """Success by having enough successful pods and no other left.

    Source: contract/jobset.md 2.3 step 5.
    """
    succeeded, completions = accounts.succeeded(job), dig(job, "spec", "completions")
    enough = succeeded > 0 if completions is None else succeeded >= completions
    if not enough or classes.active:
        return None
    return Verdict(
        type=SUCCESS_CRITERIA_MET,
        reason="CompletionsReached",
        message="Reached expected number of succeeded pods",
    )


def find_deadline_s(job: ObjectView, now: datetime) -> float | None:
    """Seconds until `activeDeadlineSeconds` is over; None when no clock runs."""
    deadline_s, started = dig(job, "spec", "activeDeadlineSeconds"), dig(job, "status", "startTime")
    if deadline_s is None or started is None or is_suspended(job):
        return None
    return float(deadline_s) - seconds_between(started, now)


def _fail(reason: str, message: str) -> Verdict:
    return Verdict(type=FAILURE_TARGET, reason=reason, message=message)


def _find_policy_failure(job: ObjectView, classes: PodClasses) -> Verdict | None:
    for pod in classes.failed:
        if is_tracked(pod) and phase_of(pod) == "Failed":
            match = find_failure_match(job, pod)
            if match.action == FAIL_JOB:
                return _fail("PodFailurePolicy", match.message)
    return None


def _find_backoff_failure(
    job: ObjectView, classes: PodClasses, accounts: Accounts
) -> Verdict | None:
    limit = dig(job, "spec", "backoffLimit", default=6)
    exceeded = accounts.failed > limit
    if dig(job, "spec", "template", "spec", "restartPolicy") == "OnFailure":
        restarts = sum(map(_restarts_of, classes.active))
        exceeded = exceeded or (restarts >= limit if limit else restarts > 0)
    if not exceeded:
        return None
    return _fail("BackoffLimitExceeded", "Job has reached the specified backoff limit")


def _restarts_of(pod: ObjectView) -> int:
    statuses = [
        *dig(pod, "status", "containerStatuses", default=()),
        *dig(pod, "status", "initContainerStatuses", default=()),
    ]
    return sum(int(status.get("restartCount") or 0) for status in statuses)


def _find_deadline_failure(job: ObjectView, now: datetime) -> Verdict | None:
    left_s = find_deadline_s(job, now)
    if left_s is None or left_s > 0:
        return None
    return _fail("DeadlineExceeded", "Job was active longer than specified deadline")


def _find_index_failure(job: ObjectView, accounts: Accounts) -> Verdict | None:
    if dig(job, "spec", "backoffLimitPerIndex") is None or not accounts.failed_indexes:
        return None
    failed, most = len(accounts.failed_indexes), dig(job, "spec", "maxFailedIndexes")
    if most is not None and failed > most:
        return _fail(
            "MaxFailedIndexesExceeded",
            "Job has exceeded the specified maximal number of failed indexes",
        )
    if failed + len(accounts.completed) >= dig(job, "spec", "completions", default=0):
        return _fail("FailedIndexes", "Job has failed indexes")
    return None


def _find_success(job: ObjectView, accounts: Accounts) -> Verdict | None:
    rule = find_success_rule(job, accounts.completed)
    if rule is None:
        return None
    message = f"Matched rules at index {rule}"
    return Verdict(type=SUCCESS_CRITERIA_MET, reason="SuccessPolicy", message=message)
