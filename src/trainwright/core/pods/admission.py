"""Admission of pods: defaults on create, refusals, and what an update may change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api import kinds
from trainwright.base.errors import FieldError, Reason
from trainwright.base.objects import dig
from trainwright.core.admission import Verdict
from trainwright.core.pods.defaults import (
    add_admitted_parts,
    compute_qos_class,
    default_pod_spec,
    default_pod_template,
)
from trainwright.core.pods.rules import find_pod_errors, find_pod_spec_errors

if TYPE_CHECKING:
    from trainwright.base.objects import Object
    from trainwright.core.admission import Request

__all__ = [
    "default_pod",
    "default_pod_template",
    "find_pod_errors",
    "find_pod_spec_errors",
    "validate_pod",
]

_SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


def default_pod(request: Request) -> Object:
    """The pod with the API's defaults; a new one also gets what admission and status start with."""
    pod = request.new
    spec = default_pod_spec(pod.get("spec") or {})
    if request.old is not None:
        return {**pod, "spec": spec}
    spec = _admit(request, spec)
    status = {"phase": "Pending", "qosClass": compute_qos_class(spec), **(pod.get("status") or {})}
    return {**pod, "spec": spec, "status": status}


def validate_pod(request: Request) -> Verdict:
    """The verdict of `find_pod_errors` for the server."""
    if request.subresource:
        return Verdict()
    errors = find_pod_errors(request.new, request.old)
    if request.old is None:
        errors += _find_priority_errors(request)
    return Verdict(errors=errors)


def _find_priority_errors(request: Request) -> list[FieldError]:
    name = str(dig(request.new, "spec", "priorityClassName", default=""))
    if not name or name in _SYSTEM_PRIORITIES or request.lookup(kinds.PRIORITY_CLASS, "", name):
        return []
    detail = f"no PriorityClass with name {name} was found"
    return [FieldError(Reason.FORBIDDEN, "spec.priorityClassName", detail=detail)]


def _admit(request: Request, spec: Object) -> Object:
    name = str(spec.get("priorityClassName") or "")
    found = request.lookup(kinds.PRIORITY_CLASS, "", name) if name else None
    priority = dig(found or {}, "value")
    if priority is None:
        priority = _SYSTEM_PRIORITIES.get(name, spec.get("priority") or 0)
    policy = dig(found or {}, "preemptionPolicy", default="PreemptLowerPriority")
    return add_admitted_parts(spec, priority=priority, preemption_policy=policy)
