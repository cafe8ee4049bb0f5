"""What a structural schema says about merging: granular or atomic, keyed or not, and element names.

Where no schema speaks, the value decides: objects are granular, lists are one atomic value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainwright.base.objects import Json

    Schema = Mapping[str, Any]

_TEXT = {"type": "string"}
_WHOLE_NUMBER = {"type": "integer"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
OBJECT_META: dict[str, Any] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion"), _TEXT),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp", "selfLink"), _TEXT),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _WHOLE_NUMBER),
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": {
            "type": "array",
            "x-kubernetes-list-type": "set",
            "x-kubernetes-patch-strategy": "merge",
            "items": _TEXT,
        },
        "ownerReferences": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "x-kubernetes-patch-strategy": "merge",
            "x-kubernetes-patch-merge-key": "uid",
            "items": {"type": "object", "x-kubernetes-map-type": "atomic"},
        },
        "managedFields": {"type": "array", "x-kubernetes-list-type": "atomic"},
    },
}
"""How `metadata` merges in every kind, whatever little its own schema says about it."""


class DuplicateElement(ValueError):
    """Two elements of a keyed list have the same key; `path` is that of the element."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: duplicate entries for this key; keep one of them")
        self.path = path


class KeyMissing(ValueError):
    """An element of a keyed list lacks its key; `path` is that of the list."""

    def __init__(self, path: str, keys: Sequence[str]) -> None:
        super().__init__(f"{path}: every element needs its key {', '.join(keys)}")
        self.path = path


KEYLESS = "k:{}"
"""Name of an element that has none of the keys of its list."""


def with_object_meta(schema: Schema | None) -> Schema:
    """A kind's schema with `metadata` spelled out."""
    if schema is None:
        return {"properties": {"metadata": OBJECT_META}}
    properties = schema.get("properties", {})
    if "properties" in (properties.get("metadata") or {}):
        return schema
    return {**schema, "properties": {**properties, "metadata": OBJECT_META}}


def is_atomic_map(schema: Schema | None) -> bool:
    """Whether objects of this schema have one owner as a whole."""
    return schema is not None and schema.get("x-kubernetes-map-type") == "atomic"


def is_granular(schema: Schema | None, value: Json) -> bool:
    """Whether the value is owned field by field or element by element."""
    if isinstance(value, dict):
        return not is_atomic_map(schema) and (schema is None or schema.get("type") != "array")
    if isinstance(value, list):
        return schema is not None and schema.get("x-kubernetes-list-type") in ("map", "set")
    return False


def declares(schema: Schema | None, field: str) -> bool:
    """Whether the schema names the field, rather than allowing keys of any name."""
    return schema is not None and field in schema.get("properties", ())


def field_schema(schema: Schema | None, field: str) -> Schema | None:
    """Schema of one field or key; None where nothing is said."""
    if schema is None:
        return None
    found = schema.get("properties", {}).get(field)
    if found is None:
        found = schema.get("additionalProperties")
    return found if isinstance(found, dict) else None


def item_schema(schema: Schema | None) -> Schema | None:
    """Schema of the elements of a list."""
    found = schema.get("items") if schema is not None else None
    return found if isinstance(found, dict) else None


def element_names(schema: Schema, items: Sequence[Json]) -> list[str]:
    """The path element of each item of a keyed list or set, in order; equal ones are duplicates.

    A key that an item lacks counts as its schema default; without any key the name is `KEYLESS`.
    """
    if schema.get("x-kubernetes-list-type") == "set":
        return ["v:" + encode_json(item) for item in items]
    names = sorted(schema.get("x-kubernetes-list-map-keys", ()))
    properties = schema.get("items", {}).get("properties", {})
    keys = [(name, properties.get(name, {}).get("default")) for name in names]
    if len(names) == 1 and keys[0][1] is None:
        return _names_by_one_key(items, names[0])
    return [_element_name(item, keys) for item in items]


def _names_by_one_key(items: Sequence[Json], key: str) -> list[str]:
    """The common case, a few times faster."""
    prefix = "k:{" + encode_json(key) + ":"
    return [
        f"{prefix}{encode_json(item[key])}}}"
        if isinstance(item, dict) and item.get(key) is not None
        else KEYLESS
        for item in items
    ]


def _element_name(item: Json, keys: Sequence[tuple[str, Json]]) -> str:
    if not isinstance(item, dict):
        return KEYLESS
    found = {}
    for name, default in keys:
        value = item.get(name)
        if value is None:
            value = default
        if value is not None:
            found[name] = value
    return "k:" + encode_json(found)


_ENCODER = msgspec.json.Encoder(order="sorted")


def encode_json(value: Json) -> str:
    """Compact JSON with sorted keys, as path elements hold it."""
    return _ENCODER.encode(value).decode()
