from __future__ import annotations

from typing import Any

import pytest

from trainwright.base.errors import Reason
from trainwright.schema.patterns import compile_pattern
from trainwright.schema.validation import find_schema_errors

STRING = {"type": "string"}


def field(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"f": schema}}


@pytest.mark.parametrize(
    ("schema", "good", "bad", "reason"),
    [
        (STRING, "x", 1, Reason.TYPE_INVALID),
        (STRING, "", None, Reason.TYPE_INVALID),
        ({"type": "integer"}, 2, True, Reason.TYPE_INVALID),
        ({"type": "integer"}, 2.0, 2.5, Reason.TYPE_INVALID),
        ({"type": "number"}, 2, "2", Reason.TYPE_INVALID),
        ({"type": "boolean"}, False, 0, Reason.TYPE_INVALID),
        ({"type": "object"}, {}, [], Reason.TYPE_INVALID),
        ({"type": "array", "items": STRING}, [], {}, Reason.TYPE_INVALID),
        ({"x-kubernetes-int-or-string": True}, "50%", 1.5, Reason.TYPE_INVALID),
        ({"x-kubernetes-int-or-string": True, "pattern": r"^\d+m?$"}, 5, "5q", Reason.INVALID),
        ({"type": "string", "nullable": True}, None, {}, Reason.TYPE_INVALID),
        ({"type": "string", "enum": ["A", "B"]}, "A", "C", Reason.NOT_SUPPORTED),
        ({"type": "string", "pattern": "^a+$"}, "aa", "aab", Reason.INVALID),
        ({"type": "string", "pattern": "a"}, "xay", "x", Reason.INVALID),
        ({"type": "string", "minLength": 1}, "a", "", Reason.INVALID),
        ({"type": "string", "maxLength": 2}, "ab", "abc", Reason.TOO_LONG),
        ({"type": "integer", "minimum": 1}, 1, 0, Reason.INVALID),
        ({"type": "integer", "maximum": 1}, 1, 2, Reason.INVALID),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, 2, 1, Reason.INVALID),
        ({"type": "integer", "format": "int32"}, 2**31 - 1, 2**31, Reason.INVALID),
        ({"type": "integer", "format": "int64"}, -(2**63), 2**63, Reason.INVALID),
        ({"type": "array", "maxItems": 1}, [1], [1, 2], Reason.TOO_MANY),
        ({"type": "array", "minItems": 1}, [1], [], Reason.INVALID),
        ({"type": "object", "minProperties": 1}, {"a": 1}, {}, Reason.INVALID),
        ({"type": "object", "maxProperties": 0}, {}, {"a": 1}, Reason.TOO_MANY),
        ({"type": "string", "format": "date-time"}, "2026-01-02T03:04:05Z", "soon", Reason.INVALID),
        ({"type": "string", "format": "date-time"}, "2026-01-02T03:04:05.1+02:00", "2026-01-02", Reason.INVALID),
        ({"type": "string", "format": "quantity"}, "1.5Gi", "1x", Reason.INVALID),
        ({"type": "string", "format": "byte"}, "YQ==", "a?", Reason.INVALID),
        ({"type": "integer", "not": {"enum": [3]}}, 2, 3, Reason.INVALID),
        ({"type": "integer", "allOf": [{"minimum": 3}]}, 3, 2, Reason.INVALID),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "a", [], Reason.INVALID),
        ({"oneOf": [{"minimum": 3}, {"maximum": 1}]}, 3, 2, Reason.INVALID),
    ],
)  # fmt: skip
def test_value_is_held_against_its_schema(
    schema: dict[str, Any], good: Any, bad: Any, reason: Reason
) -> None:
    assert find_schema_errors(field(schema), {"f": good}) == []
    errors = find_schema_errors(field(schema), {"f": bad})
    assert [(error.reason, error.path) for error in errors] == [(reason, "f")]


def test_required_fields_and_nested_paths() -> None:
    schema = {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "required": ["name", "jobs"],
                "properties": {
                    "jobs": {"type": "array", "items": {"type": "object", "required": ["name"]}},
                    "labels": {"type": "object", "additionalProperties": STRING},
                },
            }
        },
    }
    assert [str(e) for e in find_schema_errors(schema, {})] == ["spec: Required value"]
    spec = {"jobs": [{"name": "a"}, {}], "labels": {"a.b": 1}}
    assert [e.path for e in find_schema_errors(schema, {"spec": spec})] == [
        "spec.name",
        "spec.jobs[1].name",
        "spec.labels.a.b",
    ]


def test_duplicate_keys_of_list_maps_and_sets() -> None:
    by_name = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object"},
    }
    items = [{"name": "A", "v": 1}, {"name": "B"}, {"name": "A", "v": 2}]
    (error,) = find_schema_errors(field(by_name), {"f": items})
    assert str(error) == 'f[2]: Duplicate value: {"name":"A"}'
    of_texts = {"type": "array", "x-kubernetes-list-type": "set", "items": STRING}
    (error,) = find_schema_errors(field(of_texts), {"f": ["a", "b", "a"]})
    assert (error.reason, error.path, error.value) == (Reason.DUPLICATE, "f[2]", "a")
    assert find_schema_errors(field({"x-kubernetes-list-type": "set"}), {"f": [1, True, "1"]}) == []


def test_messages_read_as_the_api_servers_do() -> None:
    schema = field({"type": "integer", "minimum": 1})
    assert str(find_schema_errors(schema, {"f": 0})[0]) == (
        "f: Invalid value: 0: should be greater than or equal to 1"
    )
    assert str(find_schema_errors(schema, {"f": "two"})[0]) == (
        'f: Invalid value: "string": must be of type integer: "string"'
    )
    choice = field({"type": "string", "enum": ["Ready", "Complete"]})
    assert str(find_schema_errors(choice, {"f": "Done"})[0]) == (
        'f: Unsupported value: "Done": supported values: "Ready", "Complete"'
    )


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^a$", "a\n", False),
        (r"^\d$", "٣", False),
        (r"^[[:alpha:]]+$", "ab", True),
        (r"^[]a]$", "]", True),
        (r"^[^\]$]$", "$", False),
        (r"a\z", "a", True),
        (r"\$", "$", True),
    ],
)
def test_pattern_means_what_it_means_in_go(pattern: str, text: str, found: bool) -> None:
    assert (compile_pattern(pattern).search(text) is not None) is found
