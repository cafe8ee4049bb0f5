"""A TrainJob's status, reduced from its JobSet; and its honest state, for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from trainwright.api.conditions import (
    RESUMED_MESSAGE,
    RESUMED_REASON,
    SUSPENDED_MESSAGE,
    SUSPENDED_REASON,
    TRAINJOB_COMPLETE,
    TRAINJOB_FAILED,
    TRAINJOB_SUSPENDED,
)
from trainwright.base.objects import Object, ObjectView, dig, find_condition, is_condition_true
from trainwright.base.times import render_time
from trainwright.core.trainjob import names

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

_COUNTS = ("ready", "succeeded", "failed", "active", "suspended")
_COPIED = ("status", "reason", "message", "lastTransitionTime", "observedGeneration")

Conditions = tuple[Object, ...]


def is_finished(trainjob: ObjectView) -> bool:
    """Whether the TrainJob is Complete or Failed; both are final."""
    return is_condition_true(trainjob, TRAINJOB_COMPLETE) or is_condition_true(
        trainjob, TRAINJOB_FAILED
    )


def set_condition(conditions: Conditions, wanted: Object) -> Conditions:
    """The conditions with `wanted` in the place of its type, or last.

    A condition that keeps its status keeps its lastTransitionTime.
    """
    result = []
    found = False
    for condition in conditions:
        if condition.get("type") != wanted["type"]:
            result.append(condition)
            continue
        found = True
        kept = wanted
        if condition.get("status") == wanted["status"]:
            kept = wanted | {"lastTransitionTime": condition.get("lastTransitionTime")}
        result.append(kept)
    return (*result,) if found else (*result, wanted)


def build_condition(
    condition_type: str, *, status: bool, reason: str, message: str, now: datetime
) -> Object:
    """A condition that changes now."""
    return {
        "type": condition_type,
        "status": "True" if status else "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": render_time(now),
    }


def reduce_status(trainjob: Object, jobset: Object | None, now: datetime) -> Object:
    """The TrainJob's whole status, without any condition of ours.

    Args:
        trainjob: as observed; its `trainerStatus` is kept as it is.
        jobset: the TrainJob's own JobSet, or None while there is none.
        now: the wall clock.

    Source: Trainer 2.3, steps 6 and 7 of a reconcile. Differs: Complete and Failed are final.
    """
    status: Object = dict(trainjob.get("status") or {})
    conditions: Conditions = tuple(
        c for c in status.get("conditions") or () if not names.is_own_condition(c.get("type"))
    )
    conditions = _reduce_suspended(trainjob, conditions, now)
    if jobset is not None:
        if not is_finished(trainjob):
            conditions = _reduce_terminal(jobset, conditions)
        jobs = _reduce_jobs(jobset)
        status.pop("jobsStatus", None)
        if jobs:
            status["jobsStatus"] = jobs
    return with_conditions(status, conditions)


def with_conditions(status: Object, conditions: Conditions) -> Object:
    """The status with these conditions. An emptied list stays: the schema wants one field."""
    if conditions or "conditions" in status:
        return status | {"conditions": list(conditions)}
    return status


def _reduce_suspended(trainjob: Object, conditions: Conditions, now: datetime) -> Conditions:
    if dig(trainjob, "spec", "suspend"):
        return set_condition(
            conditions,
            build_condition(
                TRAINJOB_SUSPENDED,
                status=True,
                reason=SUSPENDED_REASON,
                message=SUSPENDED_MESSAGE,
                now=now,
            ),
        )
    if is_condition_true(trainjob, TRAINJOB_SUSPENDED):
        return set_condition(
            conditions,
            build_condition(
                TRAINJOB_SUSPENDED,
                status=False,
                reason=RESUMED_REASON,
                message=RESUMED_MESSAGE,
                now=now,
            ),
        )
    return conditions


def _reduce_terminal(jobset: Object, conditions: Conditions) -> Conditions:
    for theirs, ours in names.TERMINAL:
        condition = find_condition(jobset, theirs)
        if condition is not None and condition.get("status") == "True":
            copied = {key: condition[key] for key in _COPIED if key in condition}
            conditions = set_condition(conditions, {"type": ours, **copied})
    return conditions


def _reduce_jobs(jobset: Object) -> list[Object]:
    return [
        {"name": job.get("name", "")} | {count: job.get(count) or 0 for count in _COUNTS}
        for job in dig(jobset, "status", "replicatedJobsStatus", default=())
    ]


_ENDED = frozenset({"Succeeded", "Failed"})
"""Phases of pods whose processes have ended."""

StateName = Literal["Suspended", "Pending", "Running", "Complete", "Failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a TrainJob is doing, in one word, and why."""

    name: StateName
    reason: str = ""
    """One word, as a condition or a pod gives it."""
    message: str = ""


def reduce_state(trainjob: Object, jobset: Object | None, pods: Sequence[Object]) -> State:
    """The honest state of a TrainJob, from everything there is to see.

    Running means that a process of the job runs; a job whose pods wait for something is Pending,
    with what they wait for. `pods` may be empty where they are not known.
    """
    for condition_type, name in ((TRAINJOB_FAILED, "Failed"), (TRAINJOB_COMPLETE, "Complete")):
        condition = find_condition(trainjob, condition_type)
        if condition is not None and condition.get("status") == "True":
            return _state(name, condition)
    if dig(trainjob, "spec", "suspend"):
        return State(name="Suspended", reason=SUSPENDED_REASON, message=SUSPENDED_MESSAGE)
    for condition in dig(trainjob, "status", "conditions", default=()):
        if names.is_own_condition(condition.get("type")):
            return _state("Pending", condition)
    if jobset is None:
        return State(name="Pending", reason="Creating", message="its JobSet does not exist yet")
    phases = {dig(pod, "status", "phase", default="Pending") for pod in pods}
    if "Running" in phases or (not pods and _has_ready_pods(trainjob, jobset)):
        return State(name="Running")
    if phases and phases <= _ENDED:
        return State(name="Running", reason="Ending", message="its pods have ended")
    return _find_wait(pods)


def _state(name: StateName | str, condition: ObjectView) -> State:
    return State(
        name=name,  # type: ignore[arg-type]  # callers pass literals
        reason=condition.get("reason", ""),
        message=condition.get("message", ""),
    )


def _has_ready_pods(trainjob: Object, jobset: Object) -> bool:
    jobs = dig(jobset, "status", "replicatedJobsStatus") or dig(trainjob, "status", "jobsStatus")
    return any((job.get("ready") or 0) > 0 for job in jobs or ())


def _find_wait(pods: Sequence[Object]) -> State:
    """What the first waiting pod waits for."""
    for pod in pods:
        where = f"pod {dig(pod, 'metadata', 'name', default='')}"
        scheduled = find_condition(pod, "PodScheduled")
        if scheduled is not None and scheduled.get("status") == "False":
            message = f"{where}: {scheduled.get('message', '')}"
            return State(
                name="Pending", reason=scheduled.get("reason", "Unschedulable"), message=message
            )
        for key in ("initContainerStatuses", "containerStatuses"):
            for container in dig(pod, "status", key, default=()):
                waiting = dig(container, "state", "waiting")
                if waiting and waiting.get("reason"):
                    message = f"{where}: {waiting.get('message') or waiting['reason']}"
                    return State(name="Pending", reason=waiting["reason"], message=message)
    return State(name="Pending", reason="Starting", message="its pods have not started yet")
