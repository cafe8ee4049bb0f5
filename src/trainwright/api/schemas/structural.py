"""The words that schemas are written in: each function returns one node of a structural schema.

Keyword arguments that are not named here are keywords of OpenAPI in their JSON spelling, such as
`maxLength=253`. A schema is shared freely, so nobody edits one; `described`, `ruled` and
`defaulted` return changed copies that still share what lies below.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]
"""One node of a structural schema as JSON."""

QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)


def rule(expression: str, message: str, **more: Any) -> Schema:
    """One CEL rule of `x-kubernetes-validations`."""
    return {"rule": expression, "message": message, **more}


IMMUTABLE = rule("self == oldSelf", "field is immutable")
"""A transition rule: runs only where both the old and the new object carry the field."""


def _node(kind: str, description: str, facets: dict[str, Any]) -> Schema:
    rules = facets.pop("rules", ())
    node: Schema = {"type": kind}
    if description:
        node["description"] = description
    node |= facets
    if rules:
        node["x-kubernetes-validations"] = list(rules)
    return node


def string(description: str = "", **facets: Any) -> Schema:
    """Text."""
    return _node("string", description, facets)


def name(description: str = "", **facets: Any) -> Schema:
    """Text of 1 to 253 characters, as the Trainer's kinds bound their names."""
    return string(description, minLength=1, maxLength=253, **facets)


def boolean(description: str = "", **facets: Any) -> Schema:
    """True or false."""
    return _node("boolean", description, facets)


def int32(description: str = "", **facets: Any) -> Schema:
    """A whole number of 32 bits."""
    return _node("integer", description, {"format": "int32", **facets})


def int64(description: str = "", **facets: Any) -> Schema:
    """A whole number of 64 bits."""
    return _node("integer", description, {"format": "int64", **facets})


def time(description: str = "", **facets: Any) -> Schema:
    """An RFC 3339 time. Built-in kinds are sent with null for "not yet", so null is let in."""
    return string(description, format="date-time", nullable=True, **facets)


def strict_time(description: str = "", **facets: Any) -> Schema:
    """An RFC 3339 time that is never null, as custom kinds have it."""
    return string(description, format="date-time", **facets)


def quantity(description: str = "", **facets: Any) -> Schema:
    """An amount such as `500m` or `2Gi`; a plain number is let in as well."""
    return int_or_string(description, pattern=QUANTITY_PATTERN, **facets)


def int_or_string(description: str = "", **facets: Any) -> Schema:
    """A whole number or a text. Has no `type`, as structural schemas demand."""
    node = _node("", description, facets)
    del node["type"]
    return {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        **node,
    }


def obj(
    description: str = "",
    properties: dict[str, Schema] | None = None,
    required: tuple[str, ...] = (),
    **facets: Any,
) -> Schema:
    """An object with named fields; without any it is an empty object, such as `jax: {}`."""
    node = _node("object", description, facets)
    if properties:
        node["properties"] = properties
    if required:
        node["required"] = list(required)
    return node


def atomic_obj(
    description: str = "",
    properties: dict[str, Schema] | None = None,
    required: tuple[str, ...] = (),
    **facets: Any,
) -> Schema:
    """An object that one manager owns as a whole."""
    facets["x-kubernetes-map-type"] = "atomic"
    return obj(description, properties, required, **facets)


def open_obj(description: str = "", **facets: Any) -> Schema:
    """An object whose fields nobody prunes."""
    facets["x-kubernetes-preserve-unknown-fields"] = True
    return obj(description, **facets)


def map_of(values: Schema, description: str = "", **facets: Any) -> Schema:
    """A map with free keys."""
    return _node("object", description, {"additionalProperties": values, **facets})


def string_map(description: str = "", **facets: Any) -> Schema:
    """A map from text to text."""
    return map_of({"type": "string"}, description, **facets)


def atomic_string_map(description: str = "", **facets: Any) -> Schema:
    """A map from text to text that one manager owns as a whole."""
    facets["x-kubernetes-map-type"] = "atomic"
    return string_map(description, **facets)


def quantity_map(description: str = "", **facets: Any) -> Schema:
    """Amounts by name of a resource, such as `nvidia.com/gpu`."""
    return map_of(quantity(), description, **facets)


def atomic(items: Schema, description: str = "", **facets: Any) -> Schema:
    """A list that one manager owns as a whole."""
    return _list("atomic", items, description, facets)


def strings(description: str = "", **facets: Any) -> Schema:
    """An atomic list of texts."""
    return atomic({"type": "string"}, description, **facets)


def set_of(items: Schema, description: str = "", **facets: Any) -> Schema:
    """A list without duplicates whose entries have owners of their own."""
    return _list("set", items, description, facets)


def list_map(keys: tuple[str, ...], items: Schema, description: str = "", **facets: Any) -> Schema:
    """A list whose entries are told apart by `keys` and have owners of their own."""
    return _list("map", items, description, {"x-kubernetes-list-map-keys": list(keys), **facets})


def _list(kind: str, items: Schema, description: str, facets: dict[str, Any]) -> Schema:
    return _node("array", description, {"items": items, "x-kubernetes-list-type": kind, **facets})


def merged(node: Schema, key: str = "", strategy: str = "merge") -> Schema:
    """The list as a strategic merge patch treats it: merged by `key`, or by value without one."""
    marks = {"x-kubernetes-patch-strategy": strategy}
    if key:
        marks["x-kubernetes-patch-merge-key"] = key
    return node | marks


def keyed(key: str, items: Schema, description: str = "", **facets: Any) -> Schema:
    """A list map whose strategic merge patch goes by the same key: what most lists of Pods are."""
    return merged(list_map((key,), items, description, **facets), key)


def described(node: Schema, description: str) -> Schema:
    """The same definition, told for another place."""
    return node | {"description": description}


def ruled(node: Schema, *rules: Schema) -> Schema:
    """The same definition with more CEL rules."""
    seen = node.get("x-kubernetes-validations", [])
    return node | {"x-kubernetes-validations": [*seen, *rules]}


def defaulted(node: Schema, default: Any) -> Schema:
    """The same definition with a default."""
    return node | {"default": default}
