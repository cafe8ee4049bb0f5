"""Garbage collection: what becomes of dependents when their owners go.

Source: contract/jobset.md 5.10. Owners are matched by uid: the same name with another uid is absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from trainwright.api.wellknown import FOREGROUND_FINALIZER, ORPHAN_FINALIZER
from trainwright.base.objects import (
    dig,
    is_deleting,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)
from trainwright.core.plan import Patch, Plan, Propagation, build_delete

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object, ObjectView


class OwnerState(Enum):
    """How an owner reference stands."""

    PRESENT = "present"
    """The owner is there, or nobody here can say."""
    ABSENT = "absent"
    WAITING = "waiting"
    """The owner is deleted in the foreground and waits for its dependents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependent:
    """An object that names the reconciled object as its owner."""

    kind: Kind
    obj: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedObject:
    """One object, what owns it, and what it owns."""

    kind: Kind
    obj: Object
    owners: Sequence[OwnerState] = ()
    """One state for each of its owner references, in their order."""
    dependents: Sequence[Dependent] = ()


def plan_collection(observed: ObservedObject) -> Plan:
    """Decide what garbage collection does to one object."""
    obj = observed.obj
    if is_deleting(obj) and ORPHAN_FINALIZER in finalizers_of(obj):
        return _plan_orphaning(observed)
    if is_deleting(obj) and FOREGROUND_FINALIZER in finalizers_of(obj):
        return _plan_foreground(observed)
    if OwnerState.PRESENT in observed.owners:
        return _plan_detached(observed)
    if not observed.owners or is_deleting(obj):
        return Plan()
    waited_for = OwnerState.WAITING in observed.owners
    propagation = _find_propagation(obj, waited_for and bool(observed.dependents))
    return Plan(actions=(build_delete(observed.kind, obj, propagation, as_seen=True),))


def finalizers_of(obj: ObjectView) -> Sequence[str]:
    """`metadata.finalizers`, empty when absent."""
    finalizers: Sequence[str] = dig(obj, "metadata", "finalizers", default=())
    return finalizers


def owner_references_of(obj: ObjectView) -> Sequence[Mapping[str, Any]]:
    """`metadata.ownerReferences`, empty when absent."""
    references: Sequence[Mapping[str, Any]] = dig(obj, "metadata", "ownerReferences", default=())
    return references


def find_owner_state(owner: ObjectView | None, uid: str) -> OwnerState:
    """How a reference to `uid` stands when `owner` is what has the owner's name."""
    if owner is None or uid_of(owner) != uid:
        return OwnerState.ABSENT
    if is_deleting(owner) and FOREGROUND_FINALIZER in finalizers_of(owner):
        return OwnerState.WAITING
    return OwnerState.PRESENT


def is_blocking(dependent: ObjectView, owner_uid: str) -> bool:
    """Whether the owner's foreground deletion waits for the dependent."""
    return any(
        reference.get("uid") == owner_uid and reference.get("blockOwnerDeletion")
        for reference in owner_references_of(dependent)
    )


def _plan_orphaning(observed: ObservedObject) -> Plan:
    """Take the owner's reference off its dependents, then let the owner go."""
    uid = uid_of(observed.obj)
    detached = [_drop_references(d.kind, d.obj, {uid}) for d in observed.dependents]
    return Plan(actions=(*detached, _drop_finalizer(observed, ORPHAN_FINALIZER)))


def _plan_foreground(observed: ObservedObject) -> Plan:
    """Let the owner go once nothing blocks it; the dependents' own passes delete them."""
    uid = uid_of(observed.obj)
    if any(is_blocking(dependent.obj, uid) for dependent in observed.dependents):
        return Plan()
    return Plan(actions=(_drop_finalizer(observed, FOREGROUND_FINALIZER),))


def _plan_detached(observed: ObservedObject) -> Plan:
    """Some owner lives: the references to the others are dropped."""
    references = owner_references_of(observed.obj)
    stale = {
        str(reference.get("uid"))
        for reference, state in zip(references, observed.owners, strict=True)
        if state is not OwnerState.PRESENT
    }
    if not stale:
        return Plan()
    return Plan(actions=(_drop_references(observed.kind, observed.obj, stale),))


def _find_propagation(obj: ObjectView, foreground: bool) -> Propagation:
    if ORPHAN_FINALIZER in finalizers_of(obj):
        return "Orphan"
    if foreground or FOREGROUND_FINALIZER in finalizers_of(obj):
        return "Foreground"
    return "Background"


def _drop_references(kind: Kind, obj: Object, uids: set[str]) -> Patch:
    kept = [dict(ref) for ref in owner_references_of(obj) if ref.get("uid") not in uids]
    return _patch(kind, obj, {"ownerReferences": kept or None})


def _drop_finalizer(observed: ObservedObject, finalizer: str) -> Patch:
    kept = [other for other in finalizers_of(observed.obj) if other != finalizer]
    return _patch(observed.kind, observed.obj, {"finalizers": kept or None})


def _patch(kind: Kind, obj: Object, metadata: Mapping[str, Any]) -> Patch:
    return Patch(
        kind=kind,
        namespace=namespace_of(obj),
        name=name_of(obj),
        patch={"metadata": dict(metadata)},
        resource_version=resource_version_of(obj),
    )
