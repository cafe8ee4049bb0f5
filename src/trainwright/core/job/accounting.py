"""Counting ended pods once each.

Three steps, each seen to have happened before the next: the pod's uid goes into
`status.uncountedTerminatedPods` (or its index into `completedIndexes`); its finalizer goes; its uid
moves into the counters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.api.kinds import POD
from trainwright.api.wellknown import JOB_TRACKING_FINALIZER
from trainwright.base.objects import (
    dig,
    is_condition_true,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)
from trainwright.core.job.indexes import parse_indexes
from trainwright.core.job.observed import (
    has_ended,
    index_of,
    is_indexed,
    is_suspended,
    is_tracked,
    phase_of,
)
from trainwright.core.job.pods import FAILURE_COUNT
from trainwright.core.job.policies import FAIL_INDEX, IGNORE, find_failure_match
from trainwright.core.plan import Patch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.base.objects import Object, ObjectView
    from trainwright.core.job.observed import ObservedJob, PodClasses


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """The counters after this pass, and the pods to let go."""

    succeeded_counted: int
    """Counter of NonIndexed Jobs without what is still uncounted."""
    failed_counted: int
    uncounted_succeeded: tuple[str, ...]
    uncounted_failed: tuple[str, ...]
    completed: frozenset[int]
    failed_indexes: frozenset[int]
    release: tuple[Object, ...]
    """Pods whose finalizer may go: they are written down already, or never count."""

    def succeeded(self, job: ObjectView) -> int:
        """Successes so far, those of this pass included."""
        if is_indexed(job):
            return len(self.completed)
        return self.succeeded_counted + len(self.uncounted_succeeded)

    @property
    def failed(self) -> int:
        """Failures so far, those of this pass included."""
        return self.failed_counted + len(self.uncounted_failed)


def count_pods(observed: ObservedJob, classes: PodClasses) -> Accounts:
    """Bring the Job's counters up to what its pods say."""
    job = observed.job
    status = job.get("status") or {}
    tracked = {uid_of(pod) for pod in observed.pods if is_tracked(pod)}
    old_succeeded = _uncounted(job, "succeeded")
    old_failed = _uncounted(job, "failed")
    written = parse_indexes(status.get("completedIndexes") or "")
    spoiled = parse_indexes(status.get("failedIndexes") or "")
    successes = [pod for pod in classes.succeeded if is_tracked(pod)]
    failures = [pod for pod in classes.failed if is_tracked(pod)]
    dropped = [pod for pod in failures if _never_counts(job, pod)]
    counted = [pod for pod in failures if not _never_counts(job, pod)]
    new_failed = [uid_of(pod) for pod in counted if uid_of(pod) not in old_failed]
    completed, new_succeeded = written, list[str]()
    if is_indexed(job):
        limit = dig(job, "spec", "completions", default=0)
        completed |= {index for pod in successes if 0 <= (index := index_of(pod)) < limit}
        done = [pod for pod in successes if index_of(pod) in written or index_of(pod) >= limit]
    else:
        new_succeeded = [uid_of(pod) for pod in successes if uid_of(pod) not in old_succeeded]
        done = [pod for pod in successes if uid_of(pod) in old_succeeded]
    failed_indexes = (spoiled | _find_failed_indexes(job, classes)) - completed
    return Accounts(
        succeeded_counted=int(status.get("succeeded") or 0)
        + sum(u not in tracked for u in old_succeeded),
        failed_counted=int(status.get("failed") or 0) + sum(u not in tracked for u in old_failed),
        uncounted_succeeded=(*(u for u in old_succeeded if u in tracked), *new_succeeded),
        uncounted_failed=(*(u for u in old_failed if u in tracked), *new_failed),
        completed=completed,
        failed_indexes=failed_indexes,
        release=(*done, *(pod for pod in counted if uid_of(pod) in old_failed), *dropped),
    )


def build_release(pod: ObjectView) -> Patch:
    """Take the tracking finalizer off."""
    finalizers: Sequence[str] = dig(pod, "metadata", "finalizers", default=())
    rest = [finalizer for finalizer in finalizers if finalizer != JOB_TRACKING_FINALIZER]
    return Patch(
        kind=POD,
        namespace=namespace_of(pod),
        name=name_of(pod),
        patch={"metadata": {"finalizers": rest or None}},
        resource_version=resource_version_of(pod),
    )


def plan_orphans(pods: Sequence[Object]) -> tuple[Patch, ...]:
    """Let go of pods whose Job is gone or has ended."""
    return tuple(build_release(pod) for pod in pods if is_tracked(pod))


def _uncounted(job: ObjectView, field: str) -> tuple[str, ...]:
    return tuple(dig(job, "status", "uncountedTerminatedPods", field, default=()))


def _never_counts(job: ObjectView, pod: ObjectView) -> bool:
    """Whether the pod was stopped by us, or a rule says to ignore its failure."""
    if uid_of(pod) in _uncounted(job, "failed"):
        return False
    if not has_ended(pod):
        return is_suspended(job) or is_condition_true(job, "SuccessCriteriaMet")
    return phase_of(pod) == "Failed" and find_failure_match(job, pod).action == IGNORE


def _find_failed_indexes(job: ObjectView, classes: PodClasses) -> frozenset[int]:
    limit = dig(job, "spec", "backoffLimitPerIndex")
    if limit is None:
        return frozenset()
    return frozenset(
        index_of(pod)
        for pod in classes.failed
        if is_tracked(pod) and index_of(pod) >= 0 and _has_spent_index(job, pod, limit)
    )


def _has_spent_index(job: ObjectView, pod: ObjectView, limit: int) -> bool:
    action = find_failure_match(job, pod).action if phase_of(pod) == "Failed" else ""
    if action == IGNORE:
        return False
    before = int(dig(pod, "metadata", "annotations", FAILURE_COUNT, default="0"))
    return action == FAIL_INDEX or before >= limit
