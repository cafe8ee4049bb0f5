"""Which node a pod goes to, or why it goes to none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainwright.api.kinds import POD
from trainwright.base.objects import (
    dig,
    find_condition,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    resource_version_of,
)
from trainwright.base.times import render_time
from trainwright.core.plan import Event, Patch, Plan
from trainwright.merge.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from fractions import Fraction

    from trainwright.base.objects import Object, ObjectView

UNSCHEDULABLE, GATED = "Unschedulable", "SchedulingGated"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPod:
    """A pod without a node, and the nodes with what runs on them."""

    pod: Object
    nodes: Sequence[Object]
    bound: Sequence[Object] = ()
    """Pods that hold resources of a node: bound and not ended."""


def plan_scheduling(observed: ObservedPod, now: datetime) -> Plan:
    """Bind the pod to a node, or say in its PodScheduled condition why not.

    Source: contract/jobset.md 3.11. A pod that is deleted before it has a node has no kubelet to end
    it: it is marked Failed, so that its Job can count it and let it go.
    """
    pod = observed.pod
    phase = dig(pod, "status", "phase", default="Pending")
    if dig(pod, "spec", "nodeName") or phase in ("Succeeded", "Failed"):
        return Plan()
    if is_deleting(pod):
        return _plan_end_without_node(pod)
    if gates := dig(pod, "spec", "schedulingGates", default=()):
        names = ", ".join(str(gate.get("name")) for gate in gates)
        return _plan_refusal(pod, GATED, f"Scheduling is blocked by scheduling gates: {names}", now)
    faults: dict[str, int] = {}
    for node in observed.nodes:
        fault = find_node_fault(pod, node, observed.bound)
        if fault is None:
            return _plan_binding(pod, name_of(node), now)
        faults[fault] = faults.get(fault, 0) + 1
    reasons = ", ".join(f"{count} {fault}" for fault, count in sorted(faults.items()))
    text = f"0/{len(observed.nodes)} nodes are available: {reasons or 'there is none yet'}."
    return _plan_refusal(pod, UNSCHEDULABLE, text, now)


def find_node_fault(pod: ObjectView, node: ObjectView, bound: Sequence[Object]) -> str | None:
    """Why the pod cannot go to the node, in the scheduler's words; None when it can."""
    spec: Mapping[str, Any] = pod["spec"]
    if dig(node, "spec", "unschedulable", default=False):
        return "node(s) were unschedulable"
    if not _is_selected(spec, node):
        return "node(s) didn't match Pod's node affinity/selector"
    for taint in dig(node, "spec", "taints", default=()):
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not _is_tolerated(spec, taint):
            return f"node(s) had untolerated taint {{{taint.get('key')}: {taint.get('value', '')}}}"
    return _find_shortage(pod, node, bound)


def find_requests(pod: ObjectView) -> dict[str, Fraction]:
    """What the pod asks for: its containers together, or its largest init container if more."""
    spec: Mapping[str, Any] = pod["spec"]
    total: dict[str, Fraction] = {"pods": parse_quantity("1")}
    for container in spec.get("containers") or ():
        for name, value in _requests_of(container).items():
            total[name] = total.get(name, parse_quantity("0")) + value
    for container in spec.get("initContainers") or ():
        for name, value in _requests_of(container).items():
            total[name] = max(total.get(name, value), value)
    return total


def _requests_of(container: Mapping[str, Any]) -> dict[str, Fraction]:
    resources = container.get("resources") or {}
    wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: parse_quantity(str(value)) for name, value in wanted.items()}


def _find_shortage(pod: ObjectView, node: ObjectView, bound: Sequence[Object]) -> str | None:
    free: dict[str, Fraction] = {
        name: parse_quantity(str(value))
        for name, value in dig(node, "status", "allocatable", default={}).items()
    }
    for other in bound:
        if dig(other, "spec", "nodeName") == name_of(node):
            for name, value in find_requests(other).items():
                if name in free:
                    free[name] -= value
    for name, value in find_requests(pod).items():
        if name == "pods" and name not in free:
            continue
        if value > free.get(name, parse_quantity("0")):
            return "Too many pods" if name == "pods" else f"Insufficient {name}"
    return None


def _is_selected(spec: Mapping[str, Any], node: ObjectView) -> bool:
    labels = labels_of(node)
    selector: Mapping[str, str] = spec.get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    terms = dig(
        spec,
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
    )
    return terms is None or any(_matches_term(term, node) for term in terms)


def _matches_term(term: Mapping[str, Any], node: ObjectView) -> bool:
    """A term without any requirement matches nothing."""
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return all(_matches(expression, labels_of(node)) for expression in expressions) and all(
        _matches(field, {"metadata.name": name_of(node)}) for field in fields
    )


def _matches(expression: Mapping[str, Any], values: Mapping[str, str]) -> bool:
    wanted: Sequence[str] = expression.get("values") or ()
    value = values.get(expression["key"])
    match expression["operator"]:
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and value.isdecimal() and int(value) > int(wanted[0])
        case "Lt":
            return value is not None and value.isdecimal() and int(value) < int(wanted[0])
    return False


def _is_tolerated(spec: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    return any(
        toleration.get("key") in (None, "", taint.get("key"))
        and toleration.get("effect") in (None, "", taint.get("effect"))
        and (
            toleration.get("operator") == "Exists"
            or toleration.get("value", "") == taint.get("value", "")
        )
        for toleration in spec.get("tolerations") or ()
    )


def _plan_binding(pod: Object, node: str, now: datetime) -> Plan:
    place = f"{namespace_of(pod)}/{name_of(pod)}"
    binding = _patch(
        pod,
        {
            "spec": {"nodeName": node},
            "status": {"conditions": _with_condition(pod, {"status": "True"}, now)},
        },
        "binding",
    )
    note = f"Successfully assigned {place} to {node}"
    event = Event(type="Normal", reason="Scheduled", note=note, action="Binding")
    return Plan(actions=(binding,), events=(event,))


def _plan_refusal(pod: Object, reason: str, message: str, now: datetime) -> Plan:
    wanted = {"status": "False", "reason": reason, "message": message}
    before = find_condition(pod, "PodScheduled") or {}
    if all(before.get(key) == value for key, value in wanted.items()):
        return Plan()
    status = _patch(pod, {"status": {"conditions": _with_condition(pod, wanted, now)}}, "status")
    if reason == GATED:
        return Plan(status=status)
    event = Event(type="Warning", reason="FailedScheduling", note=message, action="Scheduling")
    return Plan(status=status, events=(event,))


def _plan_end_without_node(pod: Object) -> Plan:
    return Plan(status=_patch(pod, {"status": {"phase": "Failed"}}, "status"))


def _with_condition(pod: Object, condition: Mapping[str, str], now: datetime) -> list[Object]:
    conditions: Sequence[Object] = dig(pod, "status", "conditions", default=())
    before = find_condition(pod, "PodScheduled")
    stamp = render_time(now)
    if before is not None and before.get("status") == condition["status"]:
        stamp = before.get("lastTransitionTime") or stamp
    others = [dict(other) for other in conditions if other["type"] != "PodScheduled"]
    return [*others, {"type": "PodScheduled", "lastTransitionTime": stamp, **condition}]


def _patch(pod: Object, patch: Mapping[str, Any], subresource: str) -> Patch:
    return Patch(
        kind=POD,
        namespace=namespace_of(pod),
        name=name_of(pod),
        patch=patch,
        resource_version=resource_version_of(pod),
        subresource=subresource,
    )
