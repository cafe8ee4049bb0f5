"""What a ResourceQuota's status is to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.kinds import PERSISTENT_VOLUME_CLAIM, POD, RESOURCE_QUOTA
from trainwright.base.objects import dig
from trainwright.core.plan import Plan, build_status_patch
from trainwright.core.quota.quotas import (
    SHORT_NAMES,
    build_quota_status,
    count_usage,
    is_covered,
    sum_usage,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object, ObjectView


def is_counted(quota: ObjectView, kind: Kind) -> bool:
    """Whether objects of a kind can take anything from a quota."""
    hard = dig(quota, "spec", "hard", default={})
    if kind in (POD, PERSISTENT_VOLUME_CLAIM):
        return True
    return f"count/{kind.resource}" in hard or SHORT_NAMES.get(kind) in hard


def plan_quota(quota: Object, content: Iterable[tuple[Kind, Object]]) -> Plan:
    """Write what the objects of its namespace use of a quota.

    Source: Kubernetes, the status of resource quotas.
    """
    used = sum_usage(
        count_usage(kind, obj) for kind, obj in content if is_covered(quota, kind, obj)
    )
    return Plan(status=build_status_patch(RESOURCE_QUOTA, quota, build_quota_status(quota, used)))
