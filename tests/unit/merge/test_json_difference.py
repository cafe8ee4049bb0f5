"""A patch between two documents makes the one from the other."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.merge.json_difference import build_json_patch
from trainwright.merge.json_patch import apply_json_patch
from trainwright.merge.merge_patch import is_same_json

SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a/b", "~", "~1"])
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["", "a", "a/b", "~0", "b"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
        ({"a/b": 1}, {}, [{"op": "remove", "path": "/a~1b"}]),
        ({}, {"~": None}, [{"op": "add", "path": "/~0", "value": None}]),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, [{"op": "replace", "path": "/a/0/b", "value": 2}]),
        ({"a": [1]}, {"a": [1, 2]}, [{"op": "replace", "path": "/a", "value": [1, 2]}]),
    ],
)
def test_patches_are_small(before: object, after: object, patch: object) -> None:
    assert build_json_patch(before, after) == patch


@settings(deadline=None, derandomize=True, max_examples=300)
@given(JSON, JSON)
def test_patches_lead_from_one_to_the_other(before: object, after: object) -> None:
    assert is_same_json(apply_json_patch(before, build_json_patch(before, after)), after)
