"""Server-side apply and the `managedFields` that it and every other write leave behind.

The caller hides what a write may not touch: for a kind with a status subresource it passes `config`
and `after` with the status of the live object (or none), and the other way round for `/status`.

Source: the API server's field management (contract of server-side apply).
Differs: the first Update entry of a new object names its inner objects by `.` in built-in kinds too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from trainwright.base.errors import Conflict
from trainwright.base.objects import dig
from trainwright.merge.fieldset import SELF, FieldSet, Tree, render_path
from trainwright.merge.merge_patch import is_same_json
from trainwright.merge.shape import with_object_meta
from trainwright.merge.typed import (
    build_field_tree,
    compare_values,
    merge_values,
    remove_fields,
    with_named_fields,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainwright.base.objects import Object
    from trainwright.merge.shape import Schema

Operation = Literal["Apply", "Update"]
ManagedFields = list[dict[str, Any]]
"""`metadata.managedFields` as on the wire."""

BEFORE_FIRST_APPLY = "before-first-apply"
"""Owner of what an object without managedFields held when somebody first applied to it."""
ANCIENT_CHANGES = "ancient-changes"
"""Owner of what the oldest updaters wrote once there are too many of them."""
MAX_UPDATE_MANAGERS = 10
KUBECTL = "kubectl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_UNTRACKED = frozenset(
    {
        "f:name",
        "f:namespace",
        "f:uid",
        "f:resourceVersion",
        "f:generation",
        "f:creationTimestamp",
        "f:selfLink",
        "f:managedFields",
    }
)
_SERVER_OWNED = frozenset(
    {
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "managedFields",
    }
)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One manager's fields; `raw` is the wire entry while nothing of it has changed."""

    manager: str
    operation: str
    api_version: str
    subresource: str
    time: str
    fields: FieldSet
    raw: dict[str, Any] | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What makes an entry itself; appliers keep theirs across API versions."""
        version = "" if self.operation == "Apply" else self.api_version
        return (self.manager, self.operation, self.subresource, version)

    @property
    def text(self) -> str:
        """The manager as conflict messages name it."""
        text = f'"{self.manager}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == "Update" else text

    def without(self, *trees: Tree) -> _Entry:
        fields = self.fields
        for tree in trees:
            fields = fields.difference(FieldSet(tree))
        return self if fields == self.fields else replace(self, fields=fields, raw=None)

    def to_wire(self) -> dict[str, Any]:
        if self.raw is not None:
            return self.raw
        wire = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": self.fields.to_fields_v1(),
        }
        if not self.time:
            del wire["time"]
        return {**wire, "subresource": self.subresource} if self.subresource else wire


_Entries = dict[tuple[str, ...], _Entry]


class ApplyConflict(Conflict):
    """Another manager owns fields to which an apply without force gives other values.

    `conflicts` holds (manager as messages name it, field path) in order.
    """

    def __init__(self, conflicts: Sequence[tuple[str, str]]) -> None:
        self.conflicts = tuple(conflicts)
        causes = [
            {
                "reason": "FieldManagerConflict",
                "message": f"conflict with {manager}",
                "field": path,
            }
            for manager, path in self.conflicts
        ]
        super().__init__(_render_conflicts(self.conflicts), details={"causes": causes})


def _render_conflicts(conflicts: Sequence[tuple[str, str]]) -> str:
    if len(conflicts) == 1:
        manager, path = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {manager}: {path}"
    lines: list[str] = []
    for manager in dict.fromkeys(manager for manager, _ in conflicts):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {path}" for owner, path in conflicts if owner == manager]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """The object after an apply and its new `managedFields`, which are not yet inside it.

    When nothing changed both are the very values that came in, and `changed` is false.
    """

    obj: Object
    managed_fields: ManagedFields
    changed: bool


def field_set_of(obj: Mapping[str, Any], schema: Schema | None) -> FieldSet:
    """The fields that applying `obj` would own, without those that nobody owns (name, uid, ...).

    Raises:
        DuplicateElement, KeyMissing: a keyed list is malformed.
    """
    return FieldSet(_owned(build_field_tree(obj, with_object_meta(schema), strict=True)))


def apply_config(
    *,
    live: Object | None,
    config: Object,
    managed: ManagedFields,
    manager: str,
    force: bool,
    schema: Schema | None,
    api_version: str,
    subresource: str = "",
    now: str,
) -> ApplyResult:
    """Server-side apply of `config` to `live`.

    Fields that the manager applied before and no longer does are removed unless others own them.
    Metadata that only the server sets (uid, resourceVersion, ...) is ignored in `config`.

    Args:
        live: the object as stored; None creates.
        config: what the manager wants to own.
        managed: `managedFields` of `live`.
        manager: name of the field manager.
        force: take over fields that others own.
        schema: structural schema of the kind; None: objects granular, lists atomic.
        api_version: `apiVersion` of the request.
        subresource: such as `status`; empty for the object itself.
        now: RFC 3339 time for the manager's entry.

    Raises:
        ApplyConflict: without `force`, when another manager owns a field with another value.
        DuplicateElement, KeyMissing: a keyed list of `config` is malformed.
    """
    schema, config = with_object_meta(schema), _without_server_owned(config)
    entries = _read_entries(managed)
    if live is not None and not entries:
        entries = _claim_before_first_apply(live, schema, api_version, now)
    mine = _Entry(
        manager,
        "Apply",
        api_version,
        subresource,
        now,
        field_set_of(config, schema),
    )
    last = entries.get(mine.key)
    others = {key: entry for key, entry in entries.items() if key != mine.key}
    obj: Object = config if live is None else merge_values(live, config, schema)
    if last is not None:
        obj = _prune(obj, last.fields, (mine, *others.values()), schema)
    kept = others
    if live is not None and is_same_json(obj, live):
        obj = live
    elif live is not None:
        taken, gone = compare_values(live, obj, schema)
        if not force:
            _refuse_conflicts(others, taken, live, manager=manager, schema=schema)
        kept = _without(others, taken, gone)
    unchanged = obj is live and last is not None and kept is others
    if unchanged and last is not None and _is_same_claim(last, mine):
        return ApplyResult(obj, managed, changed=False)
    if not mine.fields.is_empty():
        kept = {**kept, mine.key: mine}
    elif obj is live and last is None and managed:
        return ApplyResult(obj, managed, changed=False)
    return ApplyResult(obj, _write_entries(kept), changed=True)


def track_update(
    *,
    before: Object | None,
    after: Object,
    managed: ManagedFields,
    manager: str,
    operation: Literal["Update"] = "Update",
    schema: Schema | None,
    api_version: str,
    subresource: str = "",
    now: str,
) -> ManagedFields:
    """The `managedFields` after a write that is no apply (create, replace, patch).

    What the write adds or changes belongs to the manager's Update entry from now on and to nobody
    else; what it removes belongs to nobody. A client may set `metadata.managedFields` itself, except
    through a subresource; `[]` and `[{}]` clear them. Without any entry an existing object stays
    untracked until somebody applies to it.

    Args:
        before: the object as stored; None for a create.
        after: the object as it will be stored; its `managedFields` are those that the client sent.
        managed: `managedFields` of `before`.
        manager: name of the field manager.
        operation: always `Update`.
        schema: structural schema of the kind.
        api_version: `apiVersion` of the request.
        subresource: such as `status`; empty for the object itself.
        now: RFC 3339 time for the manager's entry.
    """
    schema = with_object_meta(schema)
    wanted = None if subresource else _requested(after, managed)
    source = managed if wanted is None else wanted
    entries = _read_entries(source)
    if before is not None and not entries:
        return []
    taken, gone = (_owned(tree) for tree in compare_values(before or {}, after, schema))
    if not taken and not gone:
        return source
    kept = _without(entries, taken, gone)
    if taken:
        mine = _Entry(manager, operation, api_version, subresource, now, FieldSet(taken))
        if mine.key in kept:
            mine = replace(mine, fields=kept[mine.key].fields.union(mine.fields))
        kept = {**kept, mine.key: mine}
    return _write_entries(_capped(kept))


def _requested(after: Object, managed: ManagedFields) -> ManagedFields | None:
    """What the client wants `managedFields` to be; None when it leaves them alone."""
    sent = dig(after, "metadata", "managedFields")
    if sent is None or (managed and sent == managed):
        return None
    if sent in ([], [{}]):
        return []
    return sent if isinstance(sent, list) and _is_well_formed(sent) else None


def _is_well_formed(managed: list[Any]) -> bool:
    for entry in managed:
        if not isinstance(entry, dict) or entry.get("operation") not in ("Apply", "Update"):
            return False
        try:
            FieldSet.from_fields_v1(entry.get("fieldsV1"))
        except ValueError:
            return False
    return True


def _read_entries(managed: ManagedFields) -> _Entries:
    entries: _Entries = {}
    for raw in managed:
        fields = FieldSet(raw.get("fieldsV1") or {})
        entry = _Entry(
            raw.get("manager", ""),
            raw.get("operation", ""),
            raw.get("apiVersion", ""),
            raw.get("subresource", ""),
            raw.get("time") or "",
            fields,
            raw,
        )
        if not fields.is_empty():
            entries[entry.key] = entry
    return entries


def _write_entries(entries: _Entries) -> ManagedFields:
    ordered = sorted(
        entries.values(),
        key=lambda e: (e.operation, e.time, e.manager, e.api_version, e.subresource),
    )
    return [entry.to_wire() for entry in ordered]


def _without_server_owned(config: Object) -> Object:
    metadata = config.get("metadata")
    if not isinstance(metadata, dict) or _SERVER_OWNED.isdisjoint(metadata):
        return config
    kept = {key: value for key, value in metadata.items() if key not in _SERVER_OWNED}
    return {**config, "metadata": kept}


def _owned(tree: Tree) -> Tree:
    """The top level of a field set without what nobody owns: identity and bookkeeping."""
    result = {key: below for key, below in tree.items() if key not in ("f:apiVersion", "f:kind")}
    metadata = result.pop("f:metadata", {})
    kept = {k: below for k, below in metadata.items() if k not in _UNTRACKED and k != SELF}
    return {"f:metadata": kept, **result} if kept else result


def _claim_before_first_apply(live: Object, schema: Schema, api_version: str, now: str) -> _Entries:
    taken, _ = compare_values({}, live, schema)
    entry = _Entry(BEFORE_FIRST_APPLY, "Update", api_version, "", now, FieldSet(_owned(taken)))
    return {} if entry.fields.is_empty() else {entry.key: entry}


def _without(entries: _Entries, *trees: Tree) -> _Entries:
    """The entries less the paths; the same mapping when none had any of them."""
    left = {key: entry.without(*trees) for key, entry in entries.items()}
    if all(left[key] is entries[key] for key in left):
        return entries
    return {key: entry for key, entry in left.items() if not entry.fields.is_empty()}


def _is_same_claim(last: _Entry, mine: _Entry) -> bool:
    return last.api_version == mine.api_version and last.fields == mine.fields


def _prune(obj: Object, last: FieldSet, owners: Sequence[_Entry], schema: Schema) -> Object:
    """Remove what was applied last time, unless an owner of today has it.

    Three steps: drop all of the last claim; put back what somebody owns, with its parents; and of
    what is still missing really drop only what the last claim named.
    """
    if last.is_subset(owners[0].fields):
        return obj
    owned = FieldSet()
    for owner in owners:
        owned = owned.union(owner.fields)
    dropped = FieldSet(_without_metadata_itself(with_named_fields(last.tree, schema)))
    wanted = FieldSet(with_named_fields(owned.tree, schema))
    everything = _named_paths(obj, schema)
    bare: Object = remove_fields(obj, dropped.tree, schema)
    surplus = everything.difference(_named_paths(bare, schema)).difference(wanted)
    restored: Object = remove_fields(obj, surplus.tree, schema)
    missing = everything.difference(_named_paths(restored, schema)).intersection(dropped)
    missing = missing.difference(wanted)
    pruned: Object = remove_fields(obj, missing.tree, schema)
    return pruned


def _without_metadata_itself(tree: Tree) -> Tree:
    """Whoever gives up the last label does not give up the object's name."""
    metadata = {key: below for key, below in tree.get("f:metadata", {}).items() if key != SELF}
    return {**tree, "f:metadata": metadata} if metadata else tree


def _named_paths(obj: Object, schema: Schema) -> FieldSet:
    return FieldSet(with_named_fields(build_field_tree(obj, schema), schema))


def _refuse_conflicts(
    others: _Entries, taken: Tree, live: Object, *, manager: str, schema: Schema
) -> None:
    contested = FieldSet(taken)
    clashes = [
        (entry, shared)
        for entry in sorted(others.values(), key=lambda e: e.text)
        if not (shared := entry.fields.intersection(contested)).is_empty()
    ]
    if not clashes:
        return
    if manager == KUBECTL:
        tolerated = _last_applied_fields(live, schema)
        if all(shared.is_subset(tolerated) for _, shared in clashes):
            return
    raise ApplyConflict(
        [(entry.text, render_path(path)) for entry, shared in clashes for path in shared.leaves()]
    )


def _last_applied_fields(live: Object, schema: Schema) -> FieldSet:
    """What kubectl's client-side apply set: its server-side apply may take that over unasked."""
    text = dig(live, "metadata", "annotations", LAST_APPLIED, default="")
    try:
        applied = json.loads(text)
    except (TypeError, ValueError):
        return FieldSet()
    return FieldSet(_owned(build_field_tree(applied, schema)))


def _capped(entries: _Entries) -> _Entries:
    """Fold the oldest updaters of one API version into one entry while there are too many."""
    updaters = [entry for entry in entries.values() if entry.operation == "Update"]
    excess = len(updaters) - MAX_UPDATE_MANAGERS
    if excess <= 0:
        return entries
    result = dict(entries)
    first: dict[str, _Entry] = {}
    for entry in sorted(updaters, key=lambda e: (e.time, e.manager != ANCIENT_CHANGES, e.key)):
        if excess <= 0:
            break
        bucket = first.get(entry.api_version)
        if bucket is None:
            first[entry.api_version] = entry
            continue
        result.pop(bucket.key)
        result.pop(entry.key)
        folded = _Entry(
            ANCIENT_CHANGES,
            "Update",
            entry.api_version,
            "",
            entry.time,
            bucket.fields.union(entry.fields),
        )
        first[entry.api_version] = result[folded.key] = folded
        excess -= 1
    return result
