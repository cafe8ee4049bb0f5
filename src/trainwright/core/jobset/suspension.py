"""Suspend and resume the Jobs that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.api.conditions import (
    JOBSET_RESTARTING,
    JOBSET_STARTUP_IN_PROGRESS,
    JOBSET_SUSPENDED,
)
from trainwright.api.kinds import JOB
from trainwright.base.objects import dig, name_of, namespace_of, resource_version_of
from trainwright.core.jobset.names import replicated_jobs_of
from trainwright.core.jobset.observed import replicated_job_of
from trainwright.core.jobset.startup import are_dependencies_met, is_in_order, is_started
from trainwright.core.jobset.status import rows_by_name
from trainwright.core.plan import Patch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainwright.base.objects import Object, ObjectView
    from trainwright.core.jobset.status import StatusDraft

IN_PROGRESS_REASON = "InOrderStartupPolicyInProgress"
IN_PROGRESS_MESSAGE = "in order startup policy is in progress"


def plan_suspend(active: Sequence[Object], draft: StatusDraft) -> list[Patch]:
    """Suspend every active Job; the Job controller stops the pods."""
    draft.set_condition(JOBSET_SUSPENDED, True, "SuspendedJobs", "jobset is suspended")
    draft.set_condition(JOBSET_RESTARTING, False, "JobSetSuspended", "jobset is suspended")
    return [_patch(job, {"spec": {"suspend": True}}) for job in active if not _is_suspended(job)]


def plan_resume(jobset: ObjectView, active: Sequence[Object], draft: StatusDraft) -> list[Patch]:
    """Resume what the start-up order allows, with what changed in the template meanwhile.

    Source: contract/jobset.md 1.9. A Job's `startTime` is cleared first; the pass that sees it
    cleared resumes the Job.
    """
    rows = rows_by_name(draft.status)
    patches: list[Patch] = []
    for replicated_job in replicated_jobs_of(jobset):
        if is_in_order(jobset) and is_started(replicated_job, rows):
            continue
        if not are_dependencies_met(jobset, replicated_job, rows):
            continue
        mine = [job for job in active if replicated_job_of(job) == replicated_job["name"]]
        suspended = [job for job in mine if _is_suspended(job)]
        patches += [_resume(job, replicated_job) for job in suspended]
        if is_in_order(jobset) and suspended:
            draft.set_condition(
                JOBSET_STARTUP_IN_PROGRESS, True, IN_PROGRESS_REASON, IN_PROGRESS_MESSAGE
            )
            return patches
        if is_in_order(jobset):
            return patches
    draft.set_condition(JOBSET_SUSPENDED, False, "ResumeJobs", "jobset is resumed")
    return patches


def _resume(job: Object, replicated_job: Mapping[str, Any]) -> Patch:
    if dig(job, "status", "startTime") is not None:
        return _patch(job, {"status": {"startTime": None}}, subresource="status")
    wanted = dig(replicated_job, "template", "spec", "template", default={})
    current = dig(job, "spec", "template", default={})
    metadata = {
        key: dict(dig(wanted, "metadata", key))
        for key in ("labels", "annotations")
        if dig(wanted, "metadata", key)
    }
    spec: dict[str, Any] = {}
    if selector := dig(wanted, "spec", "nodeSelector"):
        spec["nodeSelector"] = dict(selector)
    for key in ("tolerations", "schedulingGates"):
        before = list(dig(current, "spec", key, default=()))
        missing = [item for item in dig(wanted, "spec", key, default=()) if item not in before]
        if missing:
            spec[key] = before + missing
    template = {key: value for key, value in (("metadata", metadata), ("spec", spec)) if value}
    return _patch(job, {"spec": {"suspend": False} | ({"template": template} if template else {})})


def _is_suspended(job: ObjectView) -> bool:
    return bool(dig(job, "spec", "suspend", default=False))


def _patch(job: Object, patch: Mapping[str, Any], subresource: str = "") -> Patch:
    return Patch(
        kind=JOB,
        namespace=namespace_of(job),
        name=name_of(job),
        patch=patch,
        resource_version=resource_version_of(job),
        subresource=subresource,
    )
