"""LimitRanges and ResourceQuotas of a namespace, held against what is about to be created in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api import kinds
from trainwright.base.objects import Object, dig, name_of
from trainwright.core.quota.limits import apply_limit_ranges, find_limit_errors
from trainwright.core.quota.quotas import (
    count_usage,
    find_quota_excess,
    find_unstated_resources,
    sum_usage,
)
from trainwright.server import refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trainwright.api.kinds import Kind


class NamespaceLimits:
    """Reads committed objects through `list_objects(kind, namespace)`."""

    def __init__(self, list_objects: Callable[[Kind, str], Iterable[Object]]) -> None:
        self._list = list_objects

    def fill_in(self, kind: Kind, namespace: str, obj: Object) -> Object:
        """A new pod with the requests and limits that its namespace gives by default."""
        if kind != kinds.POD or not isinstance(obj.get("spec"), dict):
            return obj
        ranges = list(self._list(kinds.LIMIT_RANGE, namespace))
        return apply_limit_ranges(obj, ranges) if ranges else obj

    def check(self, kind: Kind, namespace: str, obj: Object) -> None:
        """Refuse a new object that its namespace has no room for.

        Raises:
            Forbidden: naming the limit or quota.
        """
        if kind == kinds.POD:
            ranges = list(self._list(kinds.LIMIT_RANGE, namespace))
            faults = find_limit_errors(obj, ranges) if ranges else []
            if faults:
                text = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
                raise refusals.forbidden(kind, name_of(obj), text)
        quotas = list(self._list(kinds.RESOURCE_QUOTA, namespace))
        if not quotas:
            return
        unstated = find_unstated_resources(obj, quotas) if kind == kinds.POD else None
        if unstated:
            raise refusals.forbidden(kind, name_of(obj), unstated)
        usage = count_usage(kind, obj)
        if not any(name in dig(q, "spec", "hard", default={}) for q in quotas for name in usage):
            return
        used = sum_usage(count_usage(kind, other) for other in self._list(kind, namespace))
        excess = find_quota_excess(kind, obj, quotas, used)
        if excess:
            raise refusals.forbidden(kind, name_of(obj), excess.message)
