"""LimitRange: the resources that containers get by default, and the bounds they must keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.base.objects import dig, name_of
from trainwright.core.quota.quotas import sum_pod_resources
from trainwright.merge.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trainwright.base.objects import Object, ObjectView

_CONTAINER_FIELDS = ("containers", "initContainers")


def apply_limit_ranges(pod: ObjectView, ranges: Sequence[ObjectView]) -> Object:
    """The pod with the limit ranges' default limits and requests for what it left open.

    A container's own limit also becomes its request, where it has none, before the range's default
    request would.

    Source: Kubernetes, limit ranges, type Container: `default` and `defaultRequest`.
    """
    limits, requests = _merge_defaults(ranges)
    if not limits and not requests:
        return dict(pod)
    spec = dict(pod.get("spec") or {})
    for field in _CONTAINER_FIELDS:
        if spec.get(field):
            spec[field] = [_with_defaults(c, limits, requests) for c in spec[field]]
    return {**pod, "spec": spec}


def _merge_defaults(ranges: Sequence[ObjectView]) -> tuple[dict[str, str], dict[str, str]]:
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}
    for limit_range in sorted(ranges, key=name_of):
        for limit in dig(limit_range, "spec", "limits", default=()):
            if limit.get("type") != "Container":
                continue
            default = limit.get("default") or limit.get("max") or {}
            limits = {**default, **limits}
            requests = {
                **(limit.get("defaultRequest") or limit.get("default") or limit.get("min") or {}),
                **requests,
            }
    return limits, requests


def _with_defaults(
    container: ObjectView, limits: Mapping[str, str], requests: Mapping[str, str]
) -> Object:
    resources = dict(container.get("resources") or {})
    own_limits = resources.get("limits") or {}
    own_requests = resources.get("requests") or {}
    merged_limits = {**limits, **own_limits}
    merged_requests = {**requests, **own_limits, **own_requests}
    if merged_limits:
        resources["limits"] = merged_limits
    if merged_requests:
        resources["requests"] = merged_requests
    return {**container, "resources": resources}


def find_limit_errors(pod: ObjectView, ranges: Sequence[ObjectView]) -> list[str]:
    """The refusals of a pod that leaves the bounds of its namespace, as a 403 lists them."""
    found: list[str] = []
    for limit_range in sorted(ranges, key=name_of):
        for limit in dig(limit_range, "spec", "limits", default=()):
            if limit.get("type") == "Container":
                for field in _CONTAINER_FIELDS:
                    for container in dig(pod, "spec", field, default=()):
                        found += _find_bound_errors(limit, container.get("resources") or {})
            elif limit.get("type") == "Pod":
                total = {side: sum_pod_resources(pod, side) for side in ("requests", "limits")}
                found += _find_bound_errors(limit, total)
    return found


def _find_bound_errors(limit: ObjectView, resources: ObjectView) -> Iterator[str]:
    kind = limit["type"]
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, least in (limit.get("min") or {}).items():
        asked = requests.get(name)
        if asked is None:
            yield f"minimum {name} usage per {kind} is {least}.  No request is specified"
        elif parse_quantity(asked) < parse_quantity(least):
            yield f"minimum {name} usage per {kind} is {least}, but request is {asked}"
    for name, most in (limit.get("max") or {}).items():
        given = limits.get(name)
        if given is None:
            yield f"maximum {name} usage per {kind} is {most}.  No limit is specified"
        elif parse_quantity(given) > parse_quantity(most):
            yield f"maximum {name} usage per {kind} is {most}, but limit is {given}"
    for name, ratio in (limit.get("maxLimitRequestRatio") or {}).items():
        asked, given = requests.get(name), limits.get(name)
        if asked is None or given is None or parse_quantity(asked) == 0:
            yield f"{name} max limit to request ratio per {kind} is {ratio}, but one is not set"
        elif parse_quantity(given) / parse_quantity(asked) > parse_quantity(ratio):
            shown = float(parse_quantity(given) / parse_quantity(asked))
            yield f"{name} max limit to request ratio per {kind} is {ratio}, but is {shown:f}"
