from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.merge.fieldset import FieldSet, Path, Tree, render_path

ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"', "i:0"])
PATHS = st.lists(ELEMENTS, min_size=1, max_size=3).map(tuple)
PATH_SETS = st.sets(PATHS, max_size=6)


def of(paths: set[Path]) -> FieldSet:
    return FieldSet.from_paths(*paths)


@settings(deadline=None, max_examples=300, derandomize=True)
@given(PATH_SETS, PATH_SETS)
def test_algebra_is_that_of_sets_of_paths(left: set[Path], right: set[Path]) -> None:
    a, b = of(left), of(right)
    assert set(a.leaves()) == left
    assert set(a.union(b).leaves()) == left | right
    assert set(a.difference(b).leaves()) == left - right
    assert set(a.intersection(b).leaves()) == left & right
    assert a.is_subset(b) == (left <= right)
    assert a.is_empty() == (not left)
    assert (a == b) == (left == right)
    assert all(a.has(path) == (path in left) for path in left | right)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(PATH_SETS)
def test_fields_v1_round_trips_and_is_sorted(paths: set[Path]) -> None:
    fields = of(paths).to_fields_v1()
    assert FieldSet.from_fields_v1(fields) == of(paths)
    assert list(fields) == sorted(fields, key=lambda key: (key[:2] == "i:", key))


def test_an_element_with_children_is_a_member_through_a_dot() -> None:
    fields: Tree = {"f:env": {'k:{"name":"A"}': {".": {}, "f:name": {}}}}
    paths = list(FieldSet.from_fields_v1(fields).leaves())
    assert paths == [
        ("f:env", 'k:{"name":"A"}'),
        ("f:env", 'k:{"name":"A"}', "f:name"),
    ]
    assert FieldSet.from_paths(*paths).to_fields_v1() == fields


@pytest.mark.parametrize("fields", [[], {"x": {}}, {"f:a": 1}, {"f:a": {"b": {}}}])
def test_what_is_no_fields_v1_is_refused(fields: object) -> None:
    with pytest.raises(ValueError, match="fieldsV1"):
        FieldSet.from_fields_v1(fields)  # type: ignore[arg-type]


def test_paths_read_as_in_conflict_messages() -> None:
    path = (
        "f:spec",
        "f:ports",
        'k:{"containerPort":80,"protocol":"TCP"}',
        "f:name",
    )
    assert render_path(path) == '.spec.ports[containerPort=80,protocol="TCP"].name'
    assert render_path(("f:metadata", "f:finalizers", 'v:"a/b"')) == '.metadata.finalizers[="a/b"]'
    assert render_path(("f:l", "i:2")) == ".l[2]"
