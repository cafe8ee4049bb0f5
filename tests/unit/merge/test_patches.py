from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.merge.json_patch import MAX_OPERATIONS, PatchError, apply_json_patch
from trainwright.merge.merge_patch import apply_merge_patch, build_merge_patch, is_same_json

SCALARS = st.one_of(st.booleans(), st.integers(-3, 3), st.sampled_from(["", "a", "b"]))
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)


@pytest.mark.parametrize(
    ("doc", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": 1}]}, {"a": [1]}, {"a": [1]}),
        ({"a": 1}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}),
        ({"a": 1}, ["c"], ["c"]),
    ],
)
def test_merge_patch_merges_replaces_and_deletes(doc: Any, patch: Any, result: Any) -> None:
    before = copy.deepcopy(doc)
    assert apply_merge_patch(doc, patch) == result
    assert doc == before


@settings(deadline=None, max_examples=200, derandomize=True)
@given(DOCUMENTS, DOCUMENTS)
def test_built_merge_patch_leads_from_before_to_after(before: Any, after: Any) -> None:
    patch = build_merge_patch(before, after)
    assert is_same_json(apply_merge_patch(before, patch), after)
    assert build_merge_patch(after, after) == {}


def op(name: str, path: str, **more: Any) -> dict[str, Any]:
    return {"op": name, "path": path, **more}


@pytest.mark.parametrize(
    ("ops", "result"),
    [
        ([op("add", "/c", value=1)], {"a": [1, 2], "b": {"x/y": 0}, "c": 1}),
        ([op("add", "/a/0", value=9)], {"a": [9, 1, 2], "b": {"x/y": 0}}),
        ([op("add", "/a/-", value=9)], {"a": [1, 2, 9], "b": {"x/y": 0}}),
        ([op("add", "/a/2", value=9)], {"a": [1, 2, 9], "b": {"x/y": 0}}),
        ([op("remove", "/a/0")], {"a": [2], "b": {"x/y": 0}}),
        ([op("replace", "/b/x~1y", value=7)], {"a": [1, 2], "b": {"x/y": 7}}),
        ([op("move", "/d", **{"from": "/b"})], {"a": [1, 2], "d": {"x/y": 0}}),
        ([op("copy", "/b/c", **{"from": "/a/1"})], {"a": [1, 2], "b": {"x/y": 0, "c": 2}}),
        ([op("test", "/a", value=[1, 2])], {"a": [1, 2], "b": {"x/y": 0}}),
        ([op("test", "/none", value=None)], {"a": [1, 2], "b": {"x/y": 0}}),
        ([op("replace", "", value={})], {}),
    ],
)
def test_json_patch_operations(ops: list[Any], result: Any) -> None:
    doc = {"a": [1, 2], "b": {"x/y": 0}}
    before = copy.deepcopy(doc)
    assert apply_json_patch(doc, ops) == result
    assert doc == before


@pytest.mark.parametrize(
    ("ops", "status"),
    [
        ({}, 400),
        ([1], 400),
        ([op("jump", "/a")], 400),
        ([op("add", "a", value=1)], 400),
        ([op("add", "/a")], 400),
        ([op("test", "/a", value=True)], 422),
        ([op("remove", "/x")], 422),
        ([op("replace", "/x", value=1)], 422),
        ([op("add", "/x/y", value=1)], 422),
        ([op("add", "/l/5", value=1)], 422),
        ([op("add", "/l/01", value=1)], 422),
        ([op("move", "/l/0", **{"from": "/l"})], 422),
        ([op("test", "/a", value=1)] * (MAX_OPERATIONS + 1), 413),
    ],
)
def test_json_patch_refusals_carry_the_http_code(ops: Any, status: int) -> None:
    with pytest.raises(PatchError) as refused:
        apply_json_patch({"a": 1, "l": [0]}, ops)
    assert refused.value.status == status
