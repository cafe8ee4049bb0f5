"""One pass over a JobSet, in upstream's order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.conditions import (
    JOBSET_RESTARTING,
    JOBSET_STARTUP_COMPLETED,
    JOBSET_STARTUP_IN_PROGRESS,
)
from trainwright.api.kinds import JOB, JOBSET, PERSISTENT_VOLUME_CLAIM, SERVICE
from trainwright.base.objects import dig, is_deleting, name_of
from trainwright.base.times import seconds_between
from trainwright.core.jobset import children, names
from trainwright.core.jobset.failure import apply_failure_policy
from trainwright.core.jobset.observed import is_managed_here, split_jobs
from trainwright.core.jobset.startup import are_dependencies_met, is_in_order, is_started
from trainwright.core.jobset.status import (
    StatusDraft,
    find_terminal_time,
    reduce_replicated_jobs,
    rows_by_name,
)
from trainwright.core.jobset.success import is_success_policy_met
from trainwright.core.jobset.suspension import (
    IN_PROGRESS_MESSAGE,
    IN_PROGRESS_REASON,
    plan_resume,
    plan_suspend,
)
from trainwright.core.plan import Action, Create, Delete, Event, Plan, build_delete

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from typing import Any

    from trainwright.base.objects import Object
    from trainwright.core.jobset.observed import Buckets, ObservedJobSet


def plan_jobset(observed: ObservedJobSet, now: datetime) -> Plan:
    """Decide one pass over a JobSet.

    Source: contract/jobset.md 1.6, the order of steps. Differs: a Job of an earlier attempt whose
    restart label is no number is replaced instead of failing every pass.
    """
    jobset = observed.jobset
    if is_deleting(jobset) or not is_managed_here(jobset):
        return Plan()
    buckets = split_jobs(jobset, observed.jobs)
    draft = StatusDraft(jobset, now)
    draft.status["replicatedJobsStatus"] = reduce_replicated_jobs(jobset, buckets)
    ended = find_terminal_time(jobset)
    if ended is not None:
        return _plan_ended(jobset, buckets, draft, seconds_between(ended, now))
    actions: list[Action] = [*_delete(buckets.previous)]
    suspended = bool(dig(jobset, "spec", "suspend", default=False))
    if not suspended and _are_all_ready(jobset, draft.status):
        draft.set_condition(JOBSET_RESTARTING, False, "JobsReady", "all jobs are ready")
    warnings: tuple[Event, ...] = ()
    if buckets.failed:
        apply_failure_policy(jobset, buckets.failed, draft)
    elif is_success_policy_met(jobset, buckets):
        draft.complete()
    else:
        actions += _plan_network(observed)
        created, warnings = _plan_jobs(observed, buckets, draft)
        actions += created
        if suspended:
            actions += plan_suspend(buckets.active, draft)
        else:
            actions += plan_resume(jobset, buckets.active, draft)
    return Plan(
        actions=tuple(actions),
        status=draft.build_patch(),
        events=(*warnings, *draft.events),
        error=warnings[0].note if warnings else "",
    )


def _plan_ended(jobset: Object, buckets: Buckets, draft: StatusDraft, age_s: float) -> Plan:
    """Stop what still runs, keep what has ended, and go when the time to live is over."""
    actions: list[Action] = [*_delete(buckets.active)]
    ttl_s = dig(jobset, "spec", "ttlSecondsAfterFinished")
    if ttl_s is None:
        return Plan(actions=tuple(actions), status=draft.build_patch())
    if age_s < ttl_s:
        return Plan(
            actions=tuple(actions), status=draft.build_patch(), requeue_after_s=ttl_s - age_s
        )
    actions.append(build_delete(JOBSET, jobset, "Foreground", as_seen=True))
    return Plan(actions=tuple(actions))


def _delete(jobs: Iterable[Object]) -> list[Delete]:
    return [build_delete(JOB, job, "Foreground") for job in jobs if not is_deleting(job)]


def _are_all_ready(jobset: Object, status: Mapping[str, Any]) -> bool:
    done = sum(row["ready"] + row["succeeded"] for row in status["replicatedJobsStatus"])
    return bool(done == sum(map(names.replicas_of, names.replicated_jobs_of(jobset))))


def _plan_network(observed: ObservedJobSet) -> list[Create]:
    creates = []
    if names.has_dns_hostnames(observed.jobset) and not observed.has_service:
        service = children.build_service(observed.jobset)
        creates.append(Create(kind=SERVICE, obj=service, may_exist=True))
    creates += [
        Create(kind=PERSISTENT_VOLUME_CLAIM, obj=claim, may_exist=True)
        for claim in children.build_claims(observed.jobset)
        if name_of(claim) not in observed.claims
    ]
    return creates


def _plan_jobs(
    observed: ObservedJobSet, buckets: Buckets, draft: StatusDraft
) -> tuple[list[Create], tuple[Event, ...]]:
    """Jobs to create, and warnings about names that somebody else has taken."""
    jobset = observed.jobset
    policy = dig(jobset, "spec", "failurePolicy", default={})
    if buckets.previous and policy.get("restartStrategy") == "BlockingRecreate":
        return [], ()
    in_order = is_in_order(jobset) and not dig(jobset, "spec", "suspend", default=False)
    rows = rows_by_name(draft.status)
    creates: list[Create] = []
    warnings: list[Event] = []
    for replicated_job in names.replicated_jobs_of(jobset):
        if not are_dependencies_met(jobset, replicated_job, rows):
            continue
        if in_order and is_started(replicated_job, rows):
            continue
        for index in range(names.replicas_of(replicated_job)):
            name = names.build_job_name(name_of(jobset), replicated_job["name"], index)
            if name in observed.foreign_jobs:
                warnings.append(_name_taken(name))
            elif name not in buckets.names:
                job = children.build_job(jobset, replicated_job, index)
                creates.append(Create(kind=JOB, obj=job, may_exist=True))
        if in_order:
            draft.set_condition(
                JOBSET_STARTUP_IN_PROGRESS, True, IN_PROGRESS_REASON, IN_PROGRESS_MESSAGE
            )
            return creates, tuple(warnings)
    if in_order:
        reason = "InOrderStartupPolicyCompleted"
        message = "in order startup policy has completed"
        draft.set_condition(JOBSET_STARTUP_COMPLETED, True, reason, message)
    return creates, tuple(warnings)


def _name_taken(name: str) -> Event:
    return Event(
        type="Warning",
        reason="JobCreationFailed",
        note=f'job "{name}" exists and belongs to somebody else; delete it or rename the JobSet',
    )
