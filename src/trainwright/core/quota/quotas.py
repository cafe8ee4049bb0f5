"""ResourceQuota: what one object counts for, and whether the namespace has room for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.api import kinds
from trainwright.base.objects import dig, name_of
from trainwright.merge.quantity import add_quantities, canonical_quantity, parse_quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object, ObjectView

Amounts = dict[str, str]
"""Quantities by the name that a quota gives them: `count/jobs.batch`, `requests.cpu`, `pods`."""

SHORT_NAMES: Mapping[Kind, str] = {
    kinds.POD: "pods",
    kinds.SERVICE: "services",
    kinds.CONFIG_MAP: "configmaps",
    kinds.SECRET: "secrets",
    kinds.PERSISTENT_VOLUME_CLAIM: "persistentvolumeclaims",
    kinds.RESOURCE_QUOTA: "resourcequotas",
}
_STANDARD_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaExcess:
    """One quota that has no room for an object."""

    quota: str
    requested: Amounts
    used: Amounts
    limited: Amounts

    @property
    def message(self) -> str:
        """The text after `<resource> "<name>" is forbidden: ` of the 403."""
        return (
            f"exceeded quota: {self.quota}, requested: {_render(self.requested)}, "
            f"used: {_render(self.used)}, limited: {_render(self.limited)}"
        )


def count_usage(kind: Kind, obj: ObjectView) -> Amounts:
    """What one object takes from every quota of its namespace.

    Finished pods count for `count/pods` only. Source: Kubernetes, resource quotas.
    """
    usage: Amounts = {f"count/{kind.resource}": "1"}
    if kind is kinds.POD:
        if dig(obj, "status", "phase") not in _FINISHED:
            usage |= {"pods": "1", **_count_resources(obj)}
    elif kind in SHORT_NAMES:
        usage[SHORT_NAMES[kind]] = "1"
    if kind is kinds.PERSISTENT_VOLUME_CLAIM:
        usage["requests.storage"] = str(
            dig(obj, "spec", "resources", "requests", "storage", default="0")
        )
    return usage


def sum_usage(usages: Iterable[Mapping[str, str]]) -> Amounts:
    """The sum of many objects' usages."""
    total: Amounts = {}
    for usage in usages:
        for name, amount in usage.items():
            total[name] = add_quantities(total[name], amount) if name in total else amount
    return total


def find_quota_excess(
    kind: Kind, obj: ObjectView, quotas: Sequence[ObjectView], used: Mapping[str, str]
) -> QuotaExcess | None:
    """The first quota that has no room for a new object, or None.

    Args:
        kind: of the object.
        obj: the object with its defaults, limit ranges included.
        quotas: the ResourceQuotas of its namespace.
        used: what the namespace uses now, as `sum_usage` counts it; absent names are 0.
    """
    usage = count_usage(kind, obj)
    for quota in sorted(quotas, key=name_of):
        if not is_covered(quota, kind, obj):
            continue
        hard = {name: str(value) for name, value in dig(quota, "spec", "hard", default={}).items()}
        over = [
            name
            for name, requested in usage.items()
            if name in hard
            and parse_quantity(requested) > 0
            and parse_quantity(used.get(name, "0")) + parse_quantity(requested)
            > parse_quantity(hard[name])
        ]
        if over:
            return QuotaExcess(
                quota=name_of(quota),
                requested={name: usage[name] for name in over},
                used={name: used.get(name, "0") for name in over},
                limited={name: hard[name] for name in over},
            )
    return None


def find_unstated_resources(pod: ObjectView, quotas: Sequence[ObjectView]) -> str | None:
    """The refusal of a pod that states no amount of a resource that a quota limits, or None."""
    for quota in sorted(quotas, key=name_of):
        if not is_covered(quota, kinds.POD, pod):
            continue
        hard = dig(quota, "spec", "hard", default={})
        missing = sorted({name for name in hard if _is_unstated(name, pod)})
        if missing:
            return f"failed quota: {name_of(quota)}: must specify {','.join(missing)}"
    return None


def build_quota_status(quota: ObjectView, used: Mapping[str, str]) -> Object:
    """The status of a quota: its limits, and what is used of each."""
    hard = {
        name: canonical_quantity(value)
        for name, value in dig(quota, "spec", "hard", default={}).items()
    }
    return {
        "hard": hard,
        "used": {name: canonical_quantity(used.get(name, "0")) for name in hard},
    }


def _is_unstated(name: str, pod: ObjectView) -> bool:
    side, dot, resource = name.partition(".")
    if name in ("cpu", "memory"):
        side, resource = "requests", name
    elif not dot or side not in ("requests", "limits") or resource not in ("cpu", "memory"):
        return False
    containers = (
        *dig(pod, "spec", "containers", default=()),
        *dig(pod, "spec", "initContainers", default=()),
    )
    return any(dig(container, "resources", side, resource) is None for container in containers)


def is_covered(quota: ObjectView, kind: Kind, obj: ObjectView) -> bool:
    """Whether the quota's scopes choose the object; scopes speak of pods only."""
    scopes = dig(quota, "spec", "scopes", default=())
    selected = dig(quota, "spec", "scopeSelector", "matchExpressions", default=())
    if kind is not kinds.POD:
        return not scopes and not selected
    conditions = [(scope, "Exists", ()) for scope in scopes]
    conditions += [
        (item.get("scopeName"), item.get("operator"), tuple(item.get("values") or ()))
        for item in selected
    ]
    return all(_is_in_scope(*condition, obj) for condition in conditions)


def _is_in_scope(scope: str, operator: str, values: tuple[str, ...], pod: ObjectView) -> bool:
    best_effort = bool(dig(pod, "status", "qosClass") == "BestEffort")
    terminating = dig(pod, "spec", "activeDeadlineSeconds") is not None
    match scope:
        case "BestEffort":
            return best_effort
        case "NotBestEffort":
            return not best_effort
        case "Terminating":
            return terminating
        case "NotTerminating":
            return not terminating
        case "PriorityClass":
            name = dig(pod, "spec", "priorityClassName")
            if operator in ("Exists", "DoesNotExist"):
                return bool((name is not None) == (operator == "Exists"))
            return bool((name in values) == (operator == "In"))
    return False


def _count_resources(pod: ObjectView) -> Amounts:
    counted: Amounts = {}
    for side in ("requests", "limits"):
        for name, amount in sum_pod_resources(pod, side).items():
            counted[f"{side}.{name}"] = amount
            if side == "requests" and name in _STANDARD_RESOURCES:
                counted[name] = amount
    return counted


def sum_pod_resources(pod: ObjectView, side: str) -> Amounts:
    """What a pod asks for in all: its containers together, or its largest init container.

    Args:
        pod: with defaulted containers.
        side: `requests` or `limits`.

    Source: Kubernetes, effective pod requests; sidecars count with the containers after them.
    """
    main = [
        dig(c, "resources", side, default={}) for c in dig(pod, "spec", "containers", default=())
    ]
    total = sum_usage(main)
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in dig(pod, "spec", "initContainers", default=()):
        amounts = dig(container, "resources", side, default={})
        if container.get("restartPolicy") == "Always":
            sidecars = sum_usage([sidecars, amounts])
            peak = _larger(peak, sidecars)
        else:
            peak = _larger(peak, sum_usage([sidecars, amounts]))
    total = _larger(sum_usage([total, sidecars]), peak)
    overhead = dig(pod, "spec", "overhead", default={})
    return sum_usage([total, overhead]) if overhead else total


def _larger(left: Mapping[str, str], right: Mapping[str, str]) -> Amounts:
    larger = dict(left)
    for name, amount in right.items():
        if name not in larger or parse_quantity(amount) > parse_quantity(larger[name]):
            larger[name] = amount
    return larger


def _render(amounts: Mapping[str, str]) -> str:
    return ",".join(f"{name}={canonical_quantity(amounts[name])}" for name in sorted(amounts))
