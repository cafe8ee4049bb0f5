"""What a reconcile decides to do, as values that tests compare and shells carry out in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from trainwright.base.objects import name_of, namespace_of, resource_version_of, uid_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object, ObjectView


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply:
    """Server-side apply, forced. `uid` set: the object must still be that one, so never re-create."""

    kind: Kind
    obj: Mapping[str, Any]
    manager: str = "trainer"
    uid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """POST; an object of that name being there already is success when `may_exist`."""

    kind: Kind
    obj: Mapping[str, Any]
    may_exist: bool = False


Propagation = Literal["Background", "Foreground", "Orphan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """DELETE with preconditions; the object being gone already is success."""

    kind: Kind
    namespace: str
    name: str
    uid: str
    resource_version: str | None = None
    """Set: the object must not have changed since; Conflict = requeue."""
    propagation: Propagation = "Background"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """Merge patch of the object (or its subresource) as of `resource_version`; Conflict = requeue."""

    kind: Kind
    namespace: str
    name: str
    patch: Mapping[str, Any]
    resource_version: str
    subresource: str = ""


Action = Apply | Create | Delete | Patch


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event about the reconciled object."""

    type: Literal["Normal", "Warning"]
    reason: str
    note: str
    action: str = "Reconciling"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One pass: actions in order, then one status write, then events."""

    actions: tuple[Action, ...] = ()
    status: Patch | None = None
    """Sent after the actions succeeded; `None` when the status is right already."""
    events: tuple[Event, ...] = ()
    """Published only after the status write succeeded."""
    requeue_after_s: float | None = None
    error: str = ""
    """Why the pass could not do its work; the key is retried with back-off."""


def build_delete(
    kind: Kind,
    obj: ObjectView,
    propagation: Propagation = "Background",
    *,
    as_seen: bool = False,
) -> Delete:
    """Delete this very object, not another one that has its name by then.

    `as_seen`: and only as long as it is as it was. For what goes because of its own state: its time
    to live, its owners. What goes because of somebody else's (the pods of a Job that ends) may change.
    """
    return Delete(
        kind=kind,
        namespace=namespace_of(obj),
        name=name_of(obj),
        uid=uid_of(obj),
        resource_version=(resource_version_of(obj) or None) if as_seen else None,
        propagation=propagation,
    )


def build_status_patch(kind: Kind, before: Object, status: Mapping[str, Any]) -> Patch | None:
    """The merge patch that turns `before`'s status into `status`; `None` when nothing changes."""
    changes = _find_changes(before.get("status") or {}, status)
    if not changes:
        return None
    metadata = before["metadata"]
    return Patch(
        kind=kind,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        patch={"status": changes},
        resource_version=metadata.get("resourceVersion", ""),
        subresource="status",
    )


def _find_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch from `old` to `new`: an empty map would change nothing, so it has nulls."""
    changes: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            if inner := _find_changes(before, value):
                changes[key] = inner
        elif before != value:
            changes[key] = value
    return changes
