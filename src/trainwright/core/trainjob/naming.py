"""How long a TrainJob's name may be, given the names that are made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.base.errors import FieldError, Reason
from trainwright.base.objects import dig
from trainwright.core.plugins.jobset.names import LABEL_LENGTH, POD_NAME_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainwright.core.plugins.base import Job
    from trainwright.core.trainjob.podset import PodSets


def find_longest_name(job: Job, podsets: PodSets) -> tuple[int, str]:
    """The most characters that the TrainJob's name may have, and the name that is longest then.

    JobSet makes `<name>-<job>-<replica>` for Jobs and `<name>-<job>-<replica>-<pod>-abcde` for
    pods, and refuses the JobSet when one of them cannot be a DNS label.
    """
    return min(
        ((LABEL_LENGTH - len(suffix), suffix) for suffix in _suffixes(job, podsets)),
        default=(LABEL_LENGTH, ""),
    )


def find_name_errors(job: Job, podsets: PodSets) -> list[FieldError]:
    """A name that JobSet would refuse for what it makes from it."""
    longest, suffix = find_longest_name(job, podsets)
    if len(job.name) <= longest:
        return []
    detail = (
        f"must be no longer than {longest} characters: pods of this job are called "
        f'"<name>{suffix}", which may have {LABEL_LENGTH} characters'
    )
    return [FieldError(Reason.INVALID, "metadata.name", job.name, detail)]


def _suffixes(job: Job, podsets: PodSets) -> Iterator[str]:
    modes = {
        replicated.get("name"): dig(
            replicated, "template", "spec", "completionMode", default="Indexed"
        )
        for replicated in job.template.get("replicatedJobs") or ()
    }
    for podset in podsets:
        suffix = f"-{podset.name}-{max(podset.replicas - 1, 0)}"
        if modes.get(podset.name) == "Indexed":
            suffix += f"-{max(podset.count - 1, 0)}{POD_NAME_SUFFIX}"
        yield suffix
