"""What an update of a JobSet is refused for, beyond the transition rules of its schema."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from trainwright.base.errors import FieldError, Reason
from trainwright.base.objects import dig
from trainwright.core.jobset.names import replicated_jobs_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainwright.base.objects import ObjectView

_METADATA = ("labels", "annotations")
_SPEC = ("nodeSelector", "tolerations", "schedulingGates")
"""Parts of a pod template that may change while suspended."""


def find_update_errors(new: ObjectView, old: ObjectView) -> list[FieldError]:
    """Every reason to refuse the update.

    Source: contract/jobset.md 1.4. Suspended before *or* after is enough for a pod template's
    placement to change.
    """
    return [*_find_replicated_job_errors(new, old), *_find_managed_by_errors(new, old)]


def _find_replicated_job_errors(new: ObjectView, old: ObjectView) -> Iterator[FieldError]:
    before, after = list(replicated_jobs_of(old)), list(replicated_jobs_of(new))
    if dig(old, "spec", "suspend") or dig(new, "spec", "suspend"):
        by_name = {job["name"]: job for job in before}
        after = [_without_placement(job, by_name.get(job["name"])) for job in after]
    if after != before:
        path = "spec.replicatedJobs"
        yield FieldError(Reason.INVALID, path, list(replicated_jobs_of(new)), "field is immutable")


def _find_managed_by_errors(new: ObjectView, old: ObjectView) -> Iterator[FieldError]:
    value = dig(new, "spec", "managedBy")
    if value != dig(old, "spec", "managedBy"):
        yield FieldError(Reason.INVALID, "spec.managedBy", value, "field is immutable")


def _without_placement(
    job: Mapping[str, Any], before: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    """The replicated job with its mutable parts set back to what they were."""
    if before is None:
        return job
    reset = copy.deepcopy(dict(job))
    template = reset.setdefault("template", {}).setdefault("spec", {}).setdefault("template", {})
    for part, fields in (("metadata", _METADATA), ("spec", _SPEC)):
        old: Mapping[str, Any] = dig(before, "template", "spec", "template", part, default={})
        current = dict(template.get(part) or {})
        for field in fields:
            current.pop(field, None)
            if field in old:
                current[field] = old[field]
        if current or part in dig(before, "template", "spec", "template", default={}):
            template[part] = current
        else:
            template.pop(part, None)
    return reset
