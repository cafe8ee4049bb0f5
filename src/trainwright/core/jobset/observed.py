"""What one pass over a JobSet sees, and the buckets its Jobs fall into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.api.wellknown import (
    JOBSET_CONTROLLER,
    REPLICATED_JOB_NAME_LABEL,
    RESTART_ATTEMPT_LABEL,
)
from trainwright.base.objects import dig, is_condition_true, labels_of, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trainwright.base.objects import Object, ObjectView


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedJobSet:
    """The JobSet and what exists of its children."""

    jobset: Object
    jobs: Sequence[Object] = ()
    """Jobs whose controller is this JobSet, by uid."""
    foreign_jobs: frozenset[str] = frozenset()
    """Names of Jobs in the namespace that somebody else owns."""
    has_service: bool = False
    """Whether any Service of the subdomain's name exists."""
    claims: frozenset[str] = frozenset()
    """Names of the PersistentVolumeClaims in the namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """A JobSet's Jobs by what is left to do with them."""

    active: tuple[Object, ...]
    successful: tuple[Object, ...]
    failed: tuple[Object, ...]
    previous: tuple[Object, ...]
    """Jobs of an earlier restart attempt."""

    @property
    def names(self) -> frozenset[str]:
        """Names that are taken, those of `previous` included."""
        everything = (*self.active, *self.successful, *self.failed, *self.previous)
        return frozenset(name_of(job) for job in everything)


def is_managed_here(jobset: ObjectView) -> bool:
    """Whether `spec.managedBy` leaves the JobSet to us."""
    return dig(jobset, "spec", "managedBy") in (None, JOBSET_CONTROLLER)


def restarts_of(jobset: ObjectView) -> int:
    """Global restarts so far."""
    return int(dig(jobset, "status", "restarts", default=0))


def replicated_job_of(job: ObjectView) -> str:
    """The name of the replicated job that the Job belongs to."""
    return labels_of(job).get(REPLICATED_JOB_NAME_LABEL, "")


def split_jobs(jobset: ObjectView, jobs: Iterable[Object]) -> Buckets:
    """Sort the Jobs into buckets, each in the order of names.

    A restart-attempt label that is no number counts as attempt 0.
    """
    attempt = restarts_of(jobset)
    buckets: dict[str, list[Object]] = {
        "active": [],
        "successful": [],
        "failed": [],
        "previous": [],
    }
    for job in sorted(jobs, key=name_of):
        label = labels_of(job).get(RESTART_ATTEMPT_LABEL, "0")
        if int(label if label.isdecimal() else 0) < attempt:
            buckets["previous"].append(job)
        elif is_condition_true(job, "Failed"):
            buckets["failed"].append(job)
        elif is_condition_true(job, "Complete"):
            buckets["successful"].append(job)
        else:
            buckets["active"].append(job)
    return Buckets(**{name: tuple(found) for name, found in buckets.items()})
