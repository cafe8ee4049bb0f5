"""The shapes that objects of the wire have in memory, and how to read them safely.

A Kubernetes object is kept as the plain JSON value it is on the wire: what we do not know about it
survives, and patches and applies work on exactly what the client sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Json = Any
"""Any JSON value: dict, list, str, int, float, bool or None."""

Object = dict[str, Any]
"""One Kubernetes object as JSON. Objects handed out by a lister or store must never be edited."""

ObjectView = Mapping[str, Any]
"""An object that a function only reads."""


def dig(value: Json, *path: str | int, default: Json = None) -> Json:
    """Read a nested value; `default` when any step is absent, null or of another shape.

    >>> dig({"a": [{"b": 1}]}, "a", 0, "b")
    1
    """
    for step in path:
        if isinstance(step, str) and isinstance(value, Mapping):
            value = value.get(step)
        elif (
            isinstance(step, int)
            and isinstance(value, Sequence)
            and -len(value) <= step < len(value)
        ):
            value = value[step]
        else:
            return default
        if value is None:
            return default
    return value


def name_of(obj: ObjectView) -> str:
    """`metadata.name`, or an empty string."""
    return str(dig(obj, "metadata", "name", default=""))


def namespace_of(obj: ObjectView) -> str:
    """`metadata.namespace`, or an empty string for cluster-scoped objects."""
    return str(dig(obj, "metadata", "namespace", default=""))


def uid_of(obj: ObjectView) -> str:
    """`metadata.uid`, or an empty string."""
    return str(dig(obj, "metadata", "uid", default=""))


def resource_version_of(obj: ObjectView) -> str:
    """`metadata.resourceVersion`, or an empty string."""
    return str(dig(obj, "metadata", "resourceVersion", default=""))


def labels_of(obj: ObjectView) -> Mapping[str, str]:
    """`metadata.labels`, empty when absent."""
    labels: Mapping[str, str] = dig(obj, "metadata", "labels", default={})
    return labels


def annotations_of(obj: ObjectView) -> Mapping[str, str]:
    """`metadata.annotations`, empty when absent."""
    annotations: Mapping[str, str] = dig(obj, "metadata", "annotations", default={})
    return annotations


def is_deleting(obj: ObjectView) -> bool:
    """Whether the object has a deletionTimestamp."""
    return bool(dig(obj, "metadata", "deletionTimestamp"))


def controller_of(obj: ObjectView) -> Mapping[str, Any] | None:
    """The owner reference that has `controller: true`, if any."""
    references: Sequence[Mapping[str, Any]] = dig(obj, "metadata", "ownerReferences", default=[])
    return next((reference for reference in references if reference.get("controller")), None)


def is_controlled_by(obj: ObjectView, owner: ObjectView) -> bool:
    """Whether `owner` (compared by uid) is the object's controller."""
    reference = controller_of(obj)
    return reference is not None and reference.get("uid") == uid_of(owner)


def controller_reference(owner: ObjectView) -> Object:
    """The one owner reference of objects that a controller makes for `owner`."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def find_condition(obj: ObjectView, condition_type: str) -> Mapping[str, Any] | None:
    """The condition of that type in `status.conditions`, if any."""
    conditions: Sequence[Mapping[str, Any]] = dig(obj, "status", "conditions", default=[])
    found = (c for c in conditions if isinstance(c, Mapping) and c.get("type") == condition_type)
    return next(found, None)


def is_condition_true(obj: ObjectView, condition_type: str) -> bool:
    """Whether `status.conditions` has that type with status `True`."""
    condition = find_condition(obj, condition_type)
    return condition is not None and condition.get("status") == "True"
