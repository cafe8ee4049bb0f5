"""What one pass over a Job sees: its pods, by class."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from trainwright.api.wellknown import (
    COMPLETION_INDEX_LABEL,
    JOB_CONTROLLER,
    JOB_TRACKING_FINALIZER,
)
from trainwright.base.objects import (
    annotations_of,
    dig,
    find_condition,
    is_condition_true,
    is_deleting,
)
from trainwright.base.times import parse_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.base.objects import Object, ObjectView


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedJob:
    """A Job and the pods whose controller it is, by uid."""

    job: Object
    pods: Sequence[Object] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodClasses:
    """The Job's pods by class; `failed` may overlap with `terminating`."""

    active: tuple[Object, ...]
    terminating: tuple[Object, ...]
    succeeded: tuple[Object, ...]
    failed: tuple[Object, ...]


def is_managed_here(job: ObjectView) -> bool:
    """Whether `spec.managedBy` leaves the Job to us."""
    return dig(job, "spec", "managedBy") in (None, JOB_CONTROLLER)


def is_indexed(job: ObjectView) -> bool:
    """Whether each pod has a completion index."""
    return bool(dig(job, "spec", "completionMode") == "Indexed")


def is_suspended(job: ObjectView) -> bool:
    """Whether the Job is to have no pods."""
    return bool(dig(job, "spec", "suspend", default=False))


def is_finished(job: ObjectView) -> bool:
    """Whether the Job is Complete or Failed for good."""
    return is_condition_true(job, "Complete") or is_condition_true(job, "Failed")


def replaces_only_failed(job: ObjectView) -> bool:
    """Whether a terminating pod is no failure yet and is not replaced before it has ended."""
    policy = dig(job, "spec", "podReplacementPolicy")
    return policy == "Failed" or dig(job, "spec", "podFailurePolicy") is not None


def is_tracked(pod: ObjectView) -> bool:
    """Whether the pod still has to be accounted for."""
    finalizers: Sequence[str] = dig(pod, "metadata", "finalizers", default=())
    return JOB_TRACKING_FINALIZER in finalizers


def phase_of(pod: ObjectView) -> str:
    """The pod's phase, Pending when it has none."""
    return str(dig(pod, "status", "phase", default="Pending"))


def has_ended(pod: ObjectView) -> bool:
    """Whether no process of the pod is left."""
    return phase_of(pod) in ("Succeeded", "Failed")


def is_ready(pod: ObjectView) -> bool:
    """Whether the pod's Ready condition is True."""
    return is_condition_true(pod, "Ready")


def index_of(pod: ObjectView) -> int:
    """The completion index by its annotation, which is authoritative; -1 without one."""
    text = annotations_of(pod).get(COMPLETION_INDEX_LABEL, "")
    return int(text) if text.isdecimal() else -1


def split_pods(job: ObjectView, pods: Sequence[Object]) -> PodClasses:
    """Sort the Job's pods into classes.

    Source: contract/jobset.md 2.3.
    """
    ending = [pod for pod in pods if not has_ended(pod) and is_deleting(pod)]
    failed = [pod for pod in pods if phase_of(pod) == "Failed"]
    if not replaces_only_failed(job):
        failed += ending
    return PodClasses(
        active=tuple(pod for pod in pods if not has_ended(pod) and not is_deleting(pod)),
        terminating=tuple(ending),
        succeeded=tuple(pod for pod in pods if phase_of(pod) == "Succeeded"),
        failed=tuple(failed),
    )


def find_finish_time(pod: ObjectView) -> datetime:
    """When the pod ended: last container, else not ready, else marked for deletion, else created."""
    statuses: list[Any] = [
        *dig(pod, "status", "containerStatuses", default=()),
        *dig(pod, "status", "initContainerStatuses", default=()),
    ]
    ends = [dig(status, "state", "terminated", "finishedAt") for status in statuses]
    known = [parse_time(end) for end in ends if end]
    if known and len(known) == len(ends):
        return max(known)
    ready = find_condition(pod, "Ready")
    if ready and ready.get("status") == "False" and ready.get("lastTransitionTime"):
        return parse_time(ready["lastTransitionTime"])
    if deleted := dig(pod, "metadata", "deletionTimestamp"):
        grace_s = dig(pod, "metadata", "deletionGracePeriodSeconds", default=0)
        return parse_time(deleted) - timedelta(seconds=grace_s)
    return parse_time(pod["metadata"]["creationTimestamp"])
