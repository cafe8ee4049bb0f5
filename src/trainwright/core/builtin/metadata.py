"""What is refused of object metadata, the same for all kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api import kinds
from trainwright.api.wellknown import (
    FOREGROUND_FINALIZER,
    KUBERNETES_FINALIZER,
    ORPHAN_FINALIZER,
)
from trainwright.base.errors import FieldError, Reason
from trainwright.core import names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Json, ObjectView

MAX_ANNOTATIONS_BYTES = 256 * 1024

_STANDARD_FINALIZERS = frozenset({KUBERNETES_FINALIZER, ORPHAN_FINALIZER, FOREGROUND_FINALIZER})
_NAME_FAULTS: Mapping[Kind, Callable[[str], str | None]] = {
    kinds.NAMESPACE: names.find_label_fault,
    kinds.SERVICE: names.find_label_1035_fault,
    kinds.ROLE: names.find_path_segment_fault,
    kinds.ROLE_BINDING: names.find_path_segment_fault,
    kinds.CLUSTER_ROLE: names.find_path_segment_fault,
    kinds.CLUSTER_ROLE_BINDING: names.find_path_segment_fault,
}
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid")
_UNCHANGING = ("name", "namespace", "uid", "creationTimestamp")


def find_metadata_errors(
    kind: Kind, obj: ObjectView, old: ObjectView | None, *, custom: bool = False
) -> list[FieldError]:
    """Everything wrong with `metadata` of an object that is created or (`old`) updated.

    Args:
        kind: decides the form of the name: DNS subdomain, label or path segment.
        obj: with its name; one that is still to be generated has generateName only.
        old: the stored object, None on create.
        custom: the kind is from a CRD, whose finalizers need no domain.

    Source: Kubernetes, object names and IDs; labels; annotations; finalizers; owner references.
    """
    metadata = obj.get("metadata") or {}
    found = list(_find_shape_errors(metadata))
    if found:
        return found
    found = [
        *_find_name_errors(kind, metadata),
        *find_label_errors(metadata.get("labels"), "metadata.labels"),
        *_find_annotation_errors(metadata.get("annotations")),
        *_find_finalizer_errors(metadata.get("finalizers"), custom=custom),
        *_find_owner_errors(metadata.get("ownerReferences")),
    ]
    if old is not None:
        found += _find_update_errors(metadata, old.get("metadata") or {})
    return found


def _find_shape_errors(metadata: ObjectView) -> Iterator[FieldError]:
    for field in ("labels", "annotations"):
        found = metadata.get(field) or {}
        path = f"metadata.{field}"
        if not isinstance(found, dict):
            yield FieldError(Reason.TYPE_INVALID, path, found, "must be a map of strings")
            continue
        for key, value in found.items():
            if not isinstance(value, str):
                detail = "must be a string (quote it in YAML)"
                yield FieldError(Reason.TYPE_INVALID, f"{path}.{key}", value, detail)
    for field, form in (("finalizers", str), ("ownerReferences", dict)):
        found = metadata.get(field) or []
        if not isinstance(found, list) or not all(isinstance(item, form) for item in found):
            yield FieldError(Reason.TYPE_INVALID, f"metadata.{field}", found, "must be a list")


def find_label_errors(labels: Json, path: str) -> Iterator[FieldError]:
    """Everything wrong with a map of labels at `path`."""
    for key, value in (labels or {}).items():
        fault = names.find_qualified_name_fault(key)
        if fault:
            yield FieldError(Reason.INVALID, path, key, fault)
        fault = names.find_label_value_fault(value) if isinstance(value, str) else "must be text"
        if fault:
            yield FieldError(Reason.INVALID, path, value, fault)


def _find_name_errors(kind: Kind, metadata: ObjectView) -> Iterator[FieldError]:
    find_fault = _NAME_FAULTS.get(kind, names.find_subdomain_fault)
    name, base = metadata.get("name"), metadata.get("generateName")
    if not name and not base:
        yield FieldError(
            Reason.REQUIRED, "metadata.name", detail="name or generateName is required"
        )
    if base:
        fault = find_fault(base[: names.MAX_GENERATED_BASE] + "x")
        if fault:
            yield FieldError(Reason.INVALID, "metadata.generateName", base, fault)
    fault = find_fault(name) if name else None
    if fault:
        yield FieldError(Reason.INVALID, "metadata.name", name, fault)
    namespace = metadata.get("namespace")
    if kind.namespaced:
        fault = names.find_label_fault(namespace) if namespace else None
        if fault:
            yield FieldError(Reason.INVALID, "metadata.namespace", namespace, fault)
    elif namespace:
        detail = "not allowed on this type"
        yield FieldError(Reason.FORBIDDEN, "metadata.namespace", detail=detail)


def _find_annotation_errors(annotations: Json) -> Iterator[FieldError]:
    size = 0
    for key, value in (annotations or {}).items():
        fault = names.find_qualified_name_fault(key.lower())
        if fault:
            yield FieldError(Reason.INVALID, "metadata.annotations", key, fault)
        size += len(key.encode()) + len(str(value).encode())
    if size > MAX_ANNOTATIONS_BYTES:
        detail = f"may not be more than {MAX_ANNOTATIONS_BYTES} bytes"
        yield FieldError(Reason.TOO_LONG, "metadata.annotations", detail=detail)


def _find_finalizer_errors(finalizers: Json, *, custom: bool) -> Iterator[FieldError]:
    for index, finalizer in enumerate(finalizers or ()):
        place = f"metadata.finalizers[{index}]"
        fault = names.find_qualified_name_fault(finalizer)
        if fault:
            yield FieldError(Reason.INVALID, place, finalizer, fault)
        elif not custom and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            detail = "must be a standard finalizer, or have a domain as prefix: example.com/name"
            yield FieldError(Reason.INVALID, place, finalizer, detail)
    if {ORPHAN_FINALIZER, FOREGROUND_FINALIZER} <= set(finalizers or ()):
        detail = "finalizers orphan and foregroundDeletion cannot both be set"
        yield FieldError(Reason.INVALID, "metadata.finalizers", finalizers, detail)


def _find_owner_errors(references: Json) -> Iterator[FieldError]:
    controllers = []
    for index, reference in enumerate(references or ()):
        place = f"metadata.ownerReferences[{index}]"
        for field in _OWNER_FIELDS:
            if not reference.get(field):
                yield FieldError(Reason.INVALID, f"{place}.{field}", "", "must not be empty")
        if reference.get("controller"):
            controllers.append(f"{reference.get('kind')}/{reference.get('name')}")
    if len(controllers) > 1:
        detail = (
            f"only one reference may have controller set to true, here {', '.join(controllers)}"
        )
        yield FieldError(Reason.INVALID, "metadata.ownerReferences", None, detail)


def _find_update_errors(new: ObjectView, old: ObjectView) -> Iterator[FieldError]:
    for field in _UNCHANGING:
        if field in old and new.get(field) != old[field]:
            detail = "field is immutable"
            yield FieldError(Reason.INVALID, f"metadata.{field}", new.get(field), detail)
    if old.get("deletionTimestamp"):
        added = set(new.get("finalizers") or ()) - set(old.get("finalizers") or ())
        if added:
            detail = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers {sorted(added)}"
            )
            yield FieldError(Reason.FORBIDDEN, "metadata.finalizers", detail=detail)
