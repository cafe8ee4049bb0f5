from __future__ import annotations

import copy
from typing import Any

from trainwright.schema.defaulting import apply_defaults

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "suspend": {"type": "boolean", "default": False},
                "maybe": {"type": "string", "nullable": True, "default": "x"},
                "plain": {"type": "string"},
                "policy": {
                    "type": "object",
                    "default": {},
                    "properties": {"operator": {"type": "string", "default": "All"}},
                },
                "absent": {"type": "object", "properties": {"a": {"default": 1}}},
                "jobs": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"replicas": {"default": 1}}},
                },
                "byName": {
                    "type": "object",
                    "additionalProperties": {"properties": {"replicas": {"default": 1}}},
                },
            },
        }
    },
}


def test_defaults_fill_present_parents_at_every_depth() -> None:
    obj = {"spec": {"jobs": [{"name": "a"}, {"replicas": 3}], "byName": {"n": {}}}}
    before = copy.deepcopy(obj)
    new = apply_defaults(SCHEMA, obj)
    assert new["spec"] == {
        "jobs": [{"name": "a", "replicas": 1}, {"replicas": 3}],
        "byName": {"n": {"replicas": 1}},
        "suspend": False,
        "maybe": "x",
        "policy": {"operator": "All"},
    }
    assert obj == before
    assert apply_defaults(SCHEMA, new) is new
    assert apply_defaults(SCHEMA, {"kind": "A"}) == {"kind": "A"}


def test_null_becomes_the_default_or_goes_unless_nullable() -> None:
    spec = {"suspend": None, "maybe": None, "plain": None, "policy": {"operator": None}}
    assert apply_defaults(SCHEMA, {"spec": spec})["spec"] == {
        "suspend": False,
        "maybe": None,
        "policy": {"operator": "All"},
    }


def test_defaults_are_not_shared_between_objects() -> None:
    first = apply_defaults(SCHEMA, {"spec": {}})
    first["spec"]["policy"]["operator"] = "Any"
    assert apply_defaults(SCHEMA, {"spec": {}})["spec"]["policy"] == {"operator": "All"}
