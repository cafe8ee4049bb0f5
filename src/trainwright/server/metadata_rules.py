"""Rules that hold for the metadata of every kind: name, namespace, labels, annotations, owners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api import kinds
from trainwright.base.errors import FieldError, Reason
from trainwright.core.names import (
    find_label_1035_fault,
    find_label_fault,
    find_path_segment_fault,
    find_subdomain_fault,
)
from trainwright.core.selectors import is_label_value, is_qualified_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Json, Object

MAX_ANNOTATION_BYTES = 256 * 1024

_NAME_RULES: Mapping[Kind, Callable[[str], str | None]] = {
    kinds.NAMESPACE: find_label_fault,
    kinds.SERVICE: find_label_1035_fault,
    kinds.ROLE: find_path_segment_fault,
    kinds.ROLE_BINDING: find_path_segment_fault,
    kinds.CLUSTER_ROLE: find_path_segment_fault,
    kinds.CLUSTER_ROLE_BINDING: find_path_segment_fault,
}


def find_metadata_errors(kind: Kind, obj: Object) -> Sequence[FieldError]:
    """What is wrong with `metadata`. Source: Kubernetes, ValidateObjectMeta."""
    metadata = obj["metadata"]
    errors = [*_shape_errors(metadata)]
    if errors:
        return errors
    fault = _NAME_RULES.get(kind, find_subdomain_fault)(metadata["name"])
    if fault:
        errors.append(FieldError(Reason.INVALID, "metadata.name", metadata["name"], fault))
    errors += _label_errors(metadata.get("labels") or {})
    errors += _annotation_errors(metadata.get("annotations") or {})
    errors += _finalizer_errors(metadata.get("finalizers") or [])
    errors += _owner_errors(metadata.get("ownerReferences") or [])
    return errors


def _shape_errors(metadata: Object) -> Iterator[FieldError]:
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
    for field, kind in (("finalizers", str), ("ownerReferences", dict)):
        found = metadata.get(field) or []
        if not isinstance(found, list) or not all(isinstance(item, kind) for item in found):
            yield FieldError(Reason.TYPE_INVALID, f"metadata.{field}", found, "must be a list")


def _label_errors(labels: Mapping[str, str]) -> Iterator[FieldError]:
    for key, value in labels.items():
        if not is_qualified_name(key):
            detail = "must be a label key: an optional DNS prefix and '/', then a plain name"
            yield FieldError(Reason.INVALID, "metadata.labels", key, detail)
        if not is_label_value(value):
            detail = (
                "a valid label must be an empty string or consist of alphanumeric characters, "
                "'-', '_' or '.', and must start and end with an alphanumeric character, "
                "63 characters at most"
            )
            yield FieldError(Reason.INVALID, "metadata.labels", value, detail)


def _annotation_errors(annotations: Mapping[str, str]) -> Iterator[FieldError]:
    size = 0
    for key, value in annotations.items():
        size += len(key) + len(value)
        if not is_qualified_name(key.lower()):
            detail = "must be an annotation key: an optional DNS prefix and '/', then a plain name"
            yield FieldError(Reason.INVALID, "metadata.annotations", key, detail)
    if size > MAX_ANNOTATION_BYTES:
        detail = f"may not be more than {MAX_ANNOTATION_BYTES} bytes"
        yield FieldError(Reason.TOO_LONG, "metadata.annotations", "", detail)


def _finalizer_errors(finalizers: Sequence[str]) -> Iterator[FieldError]:
    for index, finalizer in enumerate(finalizers):
        if not is_qualified_name(finalizer):
            detail = "must be a qualified name"
            path = f"metadata.finalizers[{index}]"
            yield FieldError(Reason.INVALID, path, finalizer, detail)


def _owner_errors(owners: Sequence[Mapping[str, Json]]) -> Iterator[FieldError]:
    controllers = 0
    for index, owner in enumerate(owners):
        controllers += bool(owner.get("controller"))
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                path = f"metadata.ownerReferences[{index}].{field}"
                yield FieldError(Reason.REQUIRED, path, detail="must not be empty")
    if controllers > 1:
        detail = "only one reference can have controller set to true"
        yield FieldError(Reason.INVALID, "metadata.ownerReferences", controllers, detail)
