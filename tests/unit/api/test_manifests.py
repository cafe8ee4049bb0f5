"""YAML is read as Kubernetes reads it, and what is written is read as the same value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.api.manifests import ManifestError, parse_manifests, parse_yaml, render_yaml

if TYPE_CHECKING:
    from trainwright.base.objects import Json

SCALARS: list[tuple[str, Json]] = [
    ("1e3", 1000),
    ("1.5e3", 1500),
    ("1.", 1),
    (".5", 0.5),
    ("010", 8),
    ("0o17", 15),
    ("08", 8),
    ("-0x1F", -31),
    ("0b11", 3),
    ("0b2", "0b2"),
    ("1_000", 1000),
    ("_1", "_1"),
    ("12345678901234567890123", 12345678901234567890123.0),
    ("1:30", "1:30"),
    ("190:20:30.15", "190:20:30.15"),
    ("0.1.2", "0.1.2"),
    ("1e", "1e"),
    ("1e999", "1e999"),
    ("2026-01-02", "2026-01-02"),
    ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
    ("On", True),
    ("n", False),
    ("oN", "oN"),
    ("=", "="),
    ("~", None),
    ("'1e3'", "1e3"),
]
"""Seen with kubectl 1.32: `kubectl label --local -f - -o json`."""

TEXTS = st.one_of(
    st.text(max_size=8),
    st.text(alphabet="-+.:_0123456789eExXoObBaFnN", max_size=8),
    st.sampled_from(["y", "No", "off", "~", "null", ".inf", ".nan", "<<", "=", "1e3", "1:30"]),
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(("text", "value"), SCALARS, ids=[text for text, _ in SCALARS])
def test_scalar_is_read_as_kubernetes_reads_it(text: str, value: Json) -> None:
    read = parse_yaml(f"a: {text}")["a"]
    assert (read, type(read)) == (value, type(value))


def test_keys_are_made_text() -> None:
    read = parse_yaml("3: a\ntrue: b\n2e1: c\n1.5: d\n")
    assert read == {"3": "a", "true": "b", "20": "c", "1.5": "d"}


@settings(deadline=None, max_examples=300, derandomize=True)
@given(VALUES)
def test_what_is_rendered_is_read_as_the_same_value(value: Json) -> None:
    assert parse_yaml(render_yaml({"a": value}))["a"] == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2\n", 'job.yaml:2:1: the key "a" occurs twice'),
        ("a: ]", "job.yaml:1:4: "),
        ("a: .inf", "job.yaml: no YAML: has a number that JSON has not: inf"),
        ("a: 1\n---\nb: 2\n", "job.yaml: holds 2 documents, one was wanted"),
        ("? [a]\n: b\n", "job.yaml:1:3: found unhashable key"),
        ("a: &a [*a]", "job.yaml: no YAML: too large once its YAML aliases are read"),
    ],
)
def test_what_is_no_yaml_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ManifestError) as refused:
        parse_yaml(text, "job.yaml")
    assert str(refused.value).startswith(message)


def test_last_of_two_equal_keys_holds_where_it_is_not_strict() -> None:
    assert parse_yaml("a: 1\na: 2\n", strict=False) == {"a": 2}


def test_lists_are_taken_apart() -> None:
    one = {"apiVersion": "v1", "kind": "Pod"}
    text = render_yaml({"apiVersion": "v1", "kind": "List", "items": [one, one]})
    assert parse_manifests(text) == [one, one]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{apiVersion: [1], kind: {a: b}}", "apiVersion: a list was seen, a str was wanted"),
        ("{apiVersion: 1, kind: Pod}", "apiVersion: a int was seen, a str was wanted; quote it"),
        ("{apiVersion: v1, kind: Pod, metadata: []}", "metadata: a list was seen"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: yes}}", "metadata.name: a bool was seen"),
        ("{apiVersion: v1, kind: Pod, metadata: {labels: [a]}}", "metadata.labels: a list"),
        ("{apiVersion: v1, kind: Pod, metadata: {annotations: a}}", "metadata.annotations: a str"),
        ("{apiVersion: v1, kind: List, items: {a: b}}", "items: a dict was seen"),
        ("{apiVersion: v1, kind: List, items: [1]}", "items[0]: a int was seen"),
        ("{apiVersion: v1, kind: List, items: [{kind: Pod}]}", "items[0]: apiVersion missing"),
    ],
)
def test_a_manifest_that_nobody_could_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(ManifestError) as refused:
        parse_manifests(text, "job.yaml")
    assert str(refused.value).startswith(f"job.yaml: document 1: {message}")


def test_a_manifest_may_leave_out_what_it_does_not_say() -> None:
    text = "{apiVersion: v1, kind: Pod, metadata: {name: null, labels: null}}"
    assert len(parse_manifests(text)) == 1
    assert parse_manifests("{apiVersion: v1, kind: List, items: null}") == []
