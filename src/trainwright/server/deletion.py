"""What a DELETE makes of an object: gone at once, or marked and waiting for grace or finalizers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from trainwright.api import kinds
from trainwright.api.wellknown import FOREGROUND_FINALIZER, ORPHAN_FINALIZER
from trainwright.base.errors import FieldError, Reason
from trainwright.base.objects import dig, is_deleting, name_of, resource_version_of, uid_of
from trainwright.base.times import parse_time, render_time
from trainwright.server import refusals

if TYPE_CHECKING:
    from datetime import datetime

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object
    from trainwright.machinery.api import DeleteOptions

CRD_CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"

JOB_ORPHANS_WARNING = (
    "child pods are preserved by default when jobs are deleted; "
    "set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to "
    "suppress this warning"
)
_DEFAULT_GRACE_S = 30
PERMANENT_NAMESPACES = ("default", "kube-system", "kube-public")
_POLICIES = ("Background", "Foreground", "Orphan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """The decision: remove it, or write `obj` (None: it stays exactly as it is)."""

    remove: bool
    obj: Object | None
    warnings: tuple[str, ...] = ()


def check_permanence(kind: Kind, name: str) -> None:
    """Keep the namespaces that clients count on.

    Raises:
        Forbidden: it is one of them.
    """
    if kind == kinds.NAMESPACE and name in PERMANENT_NAMESPACES:
        raise refusals.forbidden(kind, name, "this namespace may not be deleted")


def check_preconditions(kind: Kind, obj: Object, options: DeleteOptions) -> None:
    """Refuse to delete another object than the one that the caller saw.

    Raises:
        Conflict: uid or resourceVersion differ.
    """
    if options.uid is not None and options.uid != uid_of(obj):
        raise refusals.unmet_precondition(
            kind,
            name_of(obj),
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({uid_of(obj)}). The object might have been deleted and then recreated",
        )
    version = resource_version_of(obj)
    if options.resource_version is not None and options.resource_version != version:
        raise refusals.unmet_precondition(
            kind,
            name_of(obj),
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match "
            f"the ResourceVersion in record ({version}). The object might have been modified",
        )


def plan_deletion(kind: Kind, obj: Object, options: DeleteOptions, now: datetime) -> Deletion:
    """Decide on a delete whose preconditions hold.

    Raises:
        Invalid: on an unknown propagation policy or a negative grace period.

    Source: Kubernetes, registry store BeforeDelete and deletionFinalizersForGarbageCollection.
    """
    if options.propagation is not None and options.propagation not in _POLICIES:
        detail = 'supported values: "Foreground", "Background", "Orphan"'
        error = FieldError(Reason.NOT_SUPPORTED, "propagationPolicy", options.propagation, detail)
        raise refusals.invalid_options("DeleteOptions", [error])
    warnings = (JOB_ORPHANS_WARNING,) if kind == kinds.JOB and not options.propagation else ()
    before = dig(obj, "metadata", "finalizers", default=[])
    finalizers = _finalizers_after(kind, before, options)
    grace_s = _grace_s(kind, obj, options)
    held = bool(finalizers) or grace_s > 0 or _is_held_namespace(kind, obj)
    if not held:
        return Deletion(remove=True, obj=obj, warnings=warnings)
    marked = _mark(kind, obj, finalizers, grace_s, now)
    return Deletion(remove=False, obj=marked, warnings=warnings)


def _finalizers_after(kind: Kind, before: list[str], options: DeleteOptions) -> list[str]:
    policy = options.propagation
    if policy is None:
        keeps = FOREGROUND_FINALIZER in before or ORPHAN_FINALIZER in before
        if keeps or kind != kinds.JOB:
            return before
        policy = "Orphan"
    own = (FOREGROUND_FINALIZER, ORPHAN_FINALIZER)
    wanted = {"Foreground": [own[0]], "Orphan": [own[1]]}.get(policy, [])
    if all(finalizer in before for finalizer in wanted) and not any(
        finalizer in before for finalizer in own if finalizer not in wanted
    ):
        return before
    return [finalizer for finalizer in before if finalizer not in own] + wanted


def _grace_s(kind: Kind, obj: Object, options: DeleteOptions) -> int:
    if kind != kinds.POD:
        return 0
    if not dig(obj, "spec", "nodeName") or dig(obj, "status", "phase") in ("Succeeded", "Failed"):
        return 0
    if options.grace_period_s is not None:
        wanted = max(options.grace_period_s, 0)
    else:
        wanted = dig(obj, "spec", "terminationGracePeriodSeconds", default=_DEFAULT_GRACE_S)
    before = dig(obj, "metadata", "deletionGracePeriodSeconds")
    return int(wanted if before is None else min(wanted, before))


def _is_held_namespace(kind: Kind, obj: Object) -> bool:
    return kind == kinds.NAMESPACE and bool(dig(obj, "spec", "finalizers"))


def _mark(
    kind: Kind, obj: Object, finalizers: list[str], grace_s: int, now: datetime
) -> Object | None:
    metadata = obj["metadata"]
    marked = {**metadata}
    if finalizers != metadata.get("finalizers", []):
        marked["finalizers"] = finalizers
    if not is_deleting(obj):
        marked["deletionTimestamp"] = render_time(now + timedelta(seconds=grace_s))
        marked["deletionGracePeriodSeconds"] = grace_s
    elif grace_s < (metadata.get("deletionGracePeriodSeconds") or 0):
        started = parse_time(metadata["deletionTimestamp"]) - timedelta(
            seconds=metadata["deletionGracePeriodSeconds"]
        )
        marked["deletionTimestamp"] = render_time(started + timedelta(seconds=grace_s))
        marked["deletionGracePeriodSeconds"] = grace_s
    if marked == metadata:
        return None
    if metadata.get("generation") and not is_deleting(obj):
        marked["generation"] = metadata["generation"] + 1
    new = {**obj, "metadata": marked}
    if kind == kinds.NAMESPACE:
        new["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    return new


def is_released(kind: Kind, obj: Object) -> bool:
    """Whether nothing holds a deleted object any more: it is removed instead of written.

    A pod in its grace period is held by its node, a namespace also by `spec.finalizers`.
    """
    if not is_deleting(obj) or dig(obj, "metadata", "finalizers"):
        return False
    if kind == kinds.NAMESPACE:
        return not dig(obj, "spec", "finalizers")
    return not dig(obj, "metadata", "deletionGracePeriodSeconds")
