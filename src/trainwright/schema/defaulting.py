"""Filling in of the defaults that a structural schema declares."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainwright.base.objects import Json, Object


def apply_defaults(schema: Mapping[str, Any], obj: Object) -> Object:
    """The object with every default of the schema whose parent is present.

    A null is replaced where the field has a default and is not nullable, and dropped where it is
    not nullable and has none. `obj` is not edited; unchanged parts are shared with the result.

    Source: Kubernetes, CustomResourceDefinition, defaulting and nullable.
    """
    new: Object = _default(schema, obj)
    return new


def _default(schema: Mapping[str, Any], value: Json) -> Json:
    if isinstance(value, dict):
        return _default_object(schema, value)
    if isinstance(value, list):
        items = schema.get("items")
        if not isinstance(items, dict) or not value or not isinstance(value[0], (dict, list)):
            return value
        new = [_default(items, item) for item in value]
        return new if any(a is not b for a, b in zip(new, value, strict=True)) else value
    return value


def _default_object(schema: Mapping[str, Any], value: Object) -> Object:
    new: Object | None = None
    properties = schema.get("properties")
    if properties:
        for key, default in _defaults_of(properties):
            if key in value and (value[key] is not None or properties[key].get("nullable")):
                continue
            new = dict(value) if new is None else new
            new[key] = copy.deepcopy(default) if isinstance(default, (dict, list)) else default
        current = value if new is None else new
        for key, item in current.items():
            part = properties.get(key)
            if part is None:
                continue
            if item is None:
                if not part.get("nullable"):
                    new = dict(value) if new is None else new
                    new = {name: kept for name, kept in new.items() if name != key}
                continue
            if isinstance(item, (dict, list)):
                filled = _default(part, item)
                if filled is not item:
                    new = dict(value) if new is None else new
                    new[key] = filled
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict) and not properties:
        for key, item in value.items():
            if item is None and "default" in additional and not additional.get("nullable"):
                filled = copy.deepcopy(additional["default"])
            elif isinstance(item, (dict, list)):
                filled = _default(additional, item)
            else:
                continue
            if filled is not item:
                new = dict(value) if new is None else new
                new[key] = filled
    return value if new is None else new


def _defaults_of(properties: Mapping[str, Any]) -> list[tuple[str, Json]]:
    return [(key, part["default"]) for key, part in properties.items() if "default" in part]
