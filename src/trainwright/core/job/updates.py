"""What an update of a Job is refused for."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from trainwright.base.errors import FieldError, Reason
from trainwright.base.objects import dig, is_condition_true
from trainwright.core.job.rules import find_spec_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainwright.base.objects import ObjectView

_IMMUTABLE = (
    "selector",
    "completionMode",
    "podFailurePolicy",
    "successPolicy",
    "backoffLimitPerIndex",
    "managedBy",
)
_METADATA = ("labels", "annotations")
_SPEC = ("nodeSelector", "tolerations", "schedulingGates")
"""Placement: may change in the template of a suspended Job without pods."""


def find_update_errors(new: ObjectView, old: ObjectView) -> list[FieldError]:
    """Every reason to refuse the update.

    Source: contract/jobset.md 2.1, immutable and mutable fields.
    """
    return [*find_spec_errors(new), *_find_immutable_errors(new, old)]


def _find_immutable_errors(new: ObjectView, old: ObjectView) -> Iterator[FieldError]:
    for field in _IMMUTABLE:
        value = dig(new, "spec", field)
        if value != dig(old, "spec", field):
            yield FieldError(Reason.INVALID, f"spec.{field}", value, "field is immutable")
    completions = dig(new, "spec", "completions")
    if completions != dig(old, "spec", "completions") and not _scales_together(new):
        yield FieldError(Reason.INVALID, "spec.completions", completions, "field is immutable")
    before, after = dig(old, "spec", "template"), dig(new, "spec", "template")
    if _may_move(old):
        after = _without_placement(after or {}, before or {})
    if after != before:
        value = dig(new, "spec", "template")
        yield FieldError(Reason.INVALID, "spec.template", value, "field is immutable")


def _scales_together(job: ObjectView) -> bool:
    """An Indexed Job may change completions along with parallelism."""
    spec = dig(job, "spec", default={})
    indexed = spec.get("completionMode") == "Indexed" and spec.get("completions") is not None
    return bool(indexed and spec["completions"] == spec.get("parallelism"))


def _may_move(old: ObjectView) -> bool:
    """Whether the pod template's placement may change: suspended, without pods.

    Resuming in the same request counts as suspended, since JobSet and Kueue do both at once.
    """
    was = bool(dig(old, "spec", "suspend", default=False))
    never_ran = dig(old, "status", "startTime") is None or is_condition_true(old, "Suspended")
    return was and never_ran and not dig(old, "status", "active", default=0)


def _without_placement(after: Mapping[str, Any], before: Mapping[str, Any]) -> Mapping[str, Any]:
    """The template with what may change set back."""
    reset: dict[str, Any] = copy.deepcopy(dict(after))
    for part, fields in (("metadata", _METADATA), ("spec", _SPEC)):
        old: Mapping[str, Any] = before.get(part) or {}
        current = reset.get(part) or {}
        for field in fields:
            _set_back(current, old, field)
        if current or part in before:
            reset[part] = current
        else:
            reset.pop(part, None)
    spec = reset.get("spec") or {}
    _set_back_affinity(spec, before.get("spec") or {})
    resources = {
        container.get("name"): container.get("resources")
        for container in (before.get("spec") or {}).get("containers") or ()
    }
    for container in spec.get("containers") or ():
        if container.get("name") in resources:
            _set_back(container, {"resources": resources[container["name"]]}, "resources")
    return reset


def _set_back(current: dict[str, Any], old: Mapping[str, Any], field: str) -> None:
    current.pop(field, None)
    if old.get(field) is not None:
        current[field] = old[field]


def _set_back_affinity(spec: dict[str, Any], old: Mapping[str, Any]) -> None:
    """Only the node affinity may change."""
    affinity = dict(spec.get("affinity") or {})
    _set_back(affinity, old.get("affinity") or {}, "nodeAffinity")
    if affinity or old.get("affinity") is not None:
        spec["affinity"] = affinity
    else:
        spec.pop("affinity", None)
