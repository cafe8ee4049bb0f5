from __future__ import annotations

from typing import Any

import pytest

from trainwright.base.errors import Reason
from trainwright.schema.rules import find_rule_compile_errors, find_rule_errors


def ruled(kind: str, *rules: str | dict[str, Any], **facets: Any) -> dict[str, Any]:
    texts = [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]
    return {"type": kind, "x-kubernetes-validations": texts, **facets}


def spec(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": schema}}


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ("self >= 1", 1, 0),
        ("self <= 3", 3, 4),
        ("self > 0 && self < 10", 5, 10),
        ("self.matches('^[a-z]+$')", "abc", "abC"),
        ("size(self) <= 2", "éa", "abc"),
        ("self.startsWith('a') || self.endsWith('z')", "bz", "b"),
        ("has(self.a)", {"a": 1}, {}),
        ("[has(self.a), has(self.b)].filter(x, x).size() <= 1", {"a": 1}, {"a": 1, "b": 1}),
        ("self.all(x, x.n > 0)", [{"n": 1}], [{"n": 1}, {"n": 0}]),
        ("self.exists(x, x.name == 'a')", [{"name": "a"}], []),
        ("self.map(x, x.name).exists_one(n, n == 'a')", [{"name": "a"}], [{"name": "b"}]),
        ("self in ['a', 'b']", "a", "c"),
        ("type(self) == string || self >= 1", "auto", 0),
        ("isQuantity(self)", "1Gi", "1x"),
        ("quantity(self).isGreaterThan(quantity('1Gi'))", "1025Mi", "1Gi"),
        ("quantity(self) == quantity('1')", "1000m", "1001m"),
        ("quantity(self).compareTo(quantity('500m')) <= 0", "0.5", "1"),
        ("self.lowerAscii() == self", "a", "A"),
        ("self.split(',').size() == 2", "a,b", "a"),
        ("self.find('[0-9]+') == '12'", "a12", "a1"),
        ("self.isSorted()", [1, 2], [2, 1]),
        ("self.sum() == 3", [1, 2], [1]),
        ("isIP(self)", "::1", "x"),
        ("double(self) < 1.5", "1.4", "2"),
        ("duration(self) <= duration('1h')", "59m", "61m"),
    ],
)
def test_rule_holds_or_is_broken(rule: str, good: Any, bad: Any) -> None:
    schema = spec({"x-kubernetes-validations": [{"rule": rule, "message": "no"}]})
    assert find_rule_compile_errors(schema) == []
    assert find_rule_errors(schema, {"spec": good}) == []
    (error,) = find_rule_errors(schema, {"spec": bad})
    assert (error.reason, error.path, error.detail) == (Reason.INVALID, "spec", "no")


def test_transition_rule_runs_only_where_both_are_present() -> None:
    schema = spec(
        {
            "type": "object",
            "properties": {"a": ruled("object", "self == oldSelf"), "b": {"type": "string"}},
        }
    )
    new = {"spec": {"a": {"x": 1}}}
    assert find_rule_errors(schema, new) == []
    assert find_rule_errors(schema, new, {"spec": {}}) == []
    assert find_rule_errors(schema, {"spec": {"b": "x"}}, new) == []
    assert find_rule_errors(schema, new, {"spec": {"a": {"x": 1}, "b": "y"}}) == []
    (error,) = find_rule_errors(schema, new, {"spec": {"a": {"x": 2}}})
    assert str(error) == 'spec.a: Invalid value: "object": failed rule: self == oldSelf'


@pytest.mark.parametrize(
    ("facets", "paths"),
    [
        ({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]}, ["spec[1].v"]),
        ({"x-kubernetes-list-type": "atomic"}, []),
        ({}, []),
    ],
)
def test_items_meet_their_old_selves_by_key_only(facets: dict[str, Any], paths: list[str]) -> None:
    item = {"type": "object", "properties": {"v": ruled("integer", "self == oldSelf")}}
    schema = spec({"type": "array", "items": item, **facets})
    old = {"spec": [{"n": "a", "v": 1}, {"n": "b", "v": 2}]}
    new = {"spec": [{"n": "c", "v": 9}, {"n": "a", "v": 7}, {"n": "b", "v": 2}]}
    assert [error.path for error in find_rule_errors(schema, new, old)] == paths


def test_map_values_meet_by_key() -> None:
    schema = spec({"type": "object", "additionalProperties": ruled("integer", "self >= oldSelf")})
    errors = find_rule_errors(schema, {"spec": {"a": 1, "b": 1}}, {"spec": {"a": 2}})
    assert [error.path for error in errors] == ["spec.a"]


def test_root_rule_has_field_nil_and_sees_the_name() -> None:
    schema = ruled("object", {"rule": "size(self.metadata.name) <= 3", "message": "too long"})
    assert find_rule_errors(schema, {"metadata": {"name": "abc", "uid": "u"}}) == []
    (error,) = find_rule_errors(schema, {"metadata": {"name": "abcd"}})
    assert str(error) == '<nil>: Invalid value: "object": too long'


def test_message_reason_and_field_path_are_the_rules_own() -> None:
    rule = {
        "rule": "self.a < self.b",
        "message": "fallback",
        "messageExpression": "'a is ' + string(self.a)",
        "reason": "FieldValueForbidden",
        "fieldPath": ".a",
    }
    (error,) = find_rule_errors(spec(ruled("object", rule)), {"spec": {"a": 2, "b": 1}})
    assert (error.reason, error.path, error.detail) == (Reason.FORBIDDEN, "spec.a", "a is 2")
    rule["messageExpression"] = "string(self.nope)"
    (error,) = find_rule_errors(spec(ruled("object", rule)), {"spec": {"a": 2, "b": 1}})
    assert error.detail == "fallback"


def test_optional_old_self_runs_on_create_and_update() -> None:
    rule = {
        "rule": "oldSelf.hasValue() ? self > oldSelf.value() : self > 5",
        "optionalOldSelf": True,
    }
    schema = spec(ruled("integer", rule))
    assert find_rule_errors(schema, {"spec": 6}) == []
    assert len(find_rule_errors(schema, {"spec": 5})) == 1
    assert find_rule_errors(schema, {"spec": 2}, {"spec": 1}) == []
    assert len(find_rule_errors(schema, {"spec": 1}, {"spec": 1})) == 1


def test_rule_that_finds_no_answer_refuses() -> None:
    (error,) = find_rule_errors(spec(ruled("object", "self.a > 1")), {"spec": {"b": 1}})
    assert "evaluating rule: self.a > 1" in error.detail
    (error,) = find_rule_errors(spec(ruled("string", "quantity(self) == '1'")), {"spec": "1x"})
    assert "evaluating rule" in error.detail


def test_numbers_and_odd_names_reach_cel_as_kubernetes_converts_them() -> None:
    schema = spec(
        ruled(
            "object",
            "timestamp(self.at) > timestamp('2026-01-01T00:00:00Z')",
            "self.ratio + 0.5 == 1.5",
            "self.__namespace__ == 'x' && self.my__dash__name == 'y'",
            properties={
                "at": {"type": "string", "format": "date-time"},
                "ratio": {"type": "number"},
                "namespace": {"type": "string"},
                "my-name": {"type": "string"},
            },
        )
    )
    value = {"at": "2026-02-01T00:00:00Z", "ratio": 1, "namespace": "x", "my-name": "y"}
    assert find_rule_errors(schema, {"spec": value}) == []
    value["at"] = "2025-02-01T00:00:00Z"
    assert len(find_rule_errors(schema, {"spec": value})) == 1


@pytest.mark.parametrize("rule", ["self.(", "nope(self)", "unknown == 1", "1 + 1"])
def test_rule_that_does_not_compile_is_found_at_registration(rule: str) -> None:
    errors = find_rule_compile_errors(spec(ruled("string", rule)))
    assert [e.path for e in errors] == ["properties[spec].x-kubernetes-validations[0].rule"]
