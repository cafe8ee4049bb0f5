"""Dropping of fields that a structural schema does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainwright.base.objects import Json, Object

Schema = dict[str, Any]
"""A structural schema: an OpenAPI v3 document as JSON."""

_OBJECT_META = frozenset({
    "annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp",
    "finalizers", "generateName", "generation", "labels", "managedFields", "name", "namespace",
    "ownerReferences", "resourceVersion", "selfLink", "uid",
})  # fmt: skip
_TYPE_META = ("apiVersion", "kind", "metadata")


def prune(schema: Mapping[str, Any], obj: Object) -> tuple[Object, tuple[str, ...]]:
    """Drop what the schema does not know, at every depth.

    Args:
        schema: of the whole object; `apiVersion`, `kind` and object metadata are always known.
        obj: not edited; parts that lose nothing are shared with the result.

    Returns:
        The pruned object, and the dropped paths in document order: `spec.trainer.numNodez`.

    Source: Kubernetes, CustomResourceDefinition, field pruning.
    """
    dropped: list[str] = []
    pruned = _prune(schema, obj, "", dropped, is_resource=True)
    return pruned, tuple(dropped)


def _prune(
    schema: Mapping[str, Any],
    value: Json,
    path: str,
    dropped: list[str],
    *,
    is_resource: bool = False,
) -> Json:
    if isinstance(value, dict):
        return _prune_object(schema, value, path, dropped, is_resource)
    if isinstance(value, list):
        items = schema.get("items")
        if not isinstance(items, dict) or not _reaches_objects(items):
            return value
        new = [_prune(items, item, f"{path}[{i}]", dropped) for i, item in enumerate(value)]
        return new if any(a is not b for a, b in zip(new, value, strict=True)) else value
    return value


def _prune_object(
    schema: Mapping[str, Any], value: Object, path: str, dropped: list[str], is_resource: bool
) -> Object:
    properties = schema.get("properties")
    additional = schema.get("additionalProperties")
    keeps = bool(schema.get("x-kubernetes-preserve-unknown-fields")) or additional is True
    is_resource = is_resource or bool(schema.get("x-kubernetes-embedded-resource"))
    new: Object | None = None
    for key, item in value.items():
        if is_resource and key in _TYPE_META:
            kept = _prune_metadata(item, f"{path}.metadata", dropped) if key == "metadata" else item
        elif properties is not None and key in properties:
            kept = item
            if isinstance(item, (dict, list)):
                kept = _prune(properties[key], item, f"{path}.{key}" if path else key, dropped)
        elif isinstance(additional, dict):
            kept = item
            if isinstance(item, (dict, list)):
                kept = _prune(additional, item, f"{path}.{key}" if path else key, dropped)
        elif keeps:
            continue
        else:
            dropped.append(f"{path}.{key}" if path else key)
            new = dict(value) if new is None else new
            del new[key]
            continue
        if kept is not item:
            new = dict(value) if new is None else new
            new[key] = kept
    return value if new is None else new


def _prune_metadata(metadata: Json, path: str, dropped: list[str]) -> Json:
    if not isinstance(metadata, dict) or metadata.keys() <= _OBJECT_META:
        return metadata
    dropped += [f"{path.removeprefix('.')}.{key}" for key in metadata if key not in _OBJECT_META]
    return {key: value for key, value in metadata.items() if key in _OBJECT_META}


def _reaches_objects(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") in (None, "object", "array") and not (
        schema.get("x-kubernetes-int-or-string")
    )
