from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trainwright.api import kinds
from trainwright.core.builtin.metadata import find_metadata_errors

if TYPE_CHECKING:
    from trainwright.api.kinds import Kind

OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}


def paths(kind: Kind, metadata: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    before = None if old is None else {"metadata": old}
    return [e.path for e in find_metadata_errors(kind, {"metadata": metadata}, before)]


@pytest.mark.parametrize(
    ("kind", "name", "good"),
    [
        (kinds.POD, "a.b-1", True),
        (kinds.POD, "Upper", False),
        (kinds.POD, "ends-", False),
        (kinds.POD, "a" * 253, True),
        (kinds.POD, "a" * 254, False),
        (kinds.NAMESPACE, "a.b", False),
        (kinds.SERVICE, "1a", False),
        (kinds.SERVICE, "a1", True),
        (kinds.CLUSTER_ROLE, "system:Node", True),
        (kinds.CLUSTER_ROLE, "a/b", False),
        (kinds.TRAINJOB, "9lives", True),
    ],
)
def test_name_takes_the_form_of_its_kind(kind: Kind, name: str, good: bool) -> None:
    assert paths(kind, {"name": name}) == ([] if good else ["metadata.name"])


@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        ({}, "metadata.name"),
        ({"generateName": "Bad-"}, "metadata.generateName"),
        ({"labels": {"a b": "c"}}, "metadata.labels"),
        ({"labels": {"/a": "c"}}, "metadata.labels"),
        ({"labels": {"a": "-c"}}, "metadata.labels"),
        ({"labels": {"a": "c" * 64}}, "metadata.labels"),
        ({"annotations": {"a b": "c"}}, "metadata.annotations"),
        ({"annotations": {"a": "c" * 262144}}, "metadata.annotations"),
        ({"finalizers": ["mine"]}, "metadata.finalizers[0]"),
        ({"finalizers": ["a.b/c d"]}, "metadata.finalizers[0]"),
        ({"ownerReferences": [{**OWNER, "uid": ""}]}, "metadata.ownerReferences[0].uid"),
        ({"ownerReferences": [{**OWNER, "controller": True}] * 2}, "metadata.ownerReferences"),
    ],
)
def test_metadata_is_refused_at(metadata: dict[str, Any], path: str) -> None:
    base = {} if metadata in ({}, {"generateName": "Bad-"}) else {"name": "a"}
    assert paths(kinds.POD, {**base, **metadata}) == [path]


@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        ({"labels": {"a": 1}}, "metadata.labels.a"),
        ({"annotations": ["a"]}, "metadata.annotations"),
        ({"finalizers": "a.b/c"}, "metadata.finalizers"),
        ({"ownerReferences": ["p"]}, "metadata.ownerReferences"),
    ],
)
def test_metadata_of_another_shape_is_refused_for_it_alone(
    metadata: dict[str, Any], path: str
) -> None:
    assert paths(kinds.POD, {"name": "Upper", **metadata}) == [path]


def test_finalizer_of_a_custom_kind_needs_no_domain() -> None:
    obj = {"metadata": {"name": "a", "finalizers": ["mine"]}}
    assert find_metadata_errors(kinds.TRAINJOB, obj, None, custom=True) == []


def test_plain_metadata_passes() -> None:
    metadata = {
        "generateName": "a-",
        "labels": {"a.b/C_d": "", "x": "A.b_c"},
        "annotations": {"a.b/c": "c" * 1000},
        "finalizers": ["orphan", "a.b/c"],
        "ownerReferences": [OWNER],
    }
    assert paths(kinds.POD, metadata) == []
    assert paths(kinds.NAMESPACE, {"name": "a", "namespace": "b"}) == ["metadata.namespace"]


def test_update_keeps_identity_and_adds_no_finalizer_while_deleting() -> None:
    old = {
        "name": "a",
        "uid": "u",
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["a/b"],
    }
    assert paths(kinds.POD, {**old, "finalizers": []}, old) == []
    assert paths(kinds.POD, {**old, "uid": "v"}, old) == ["metadata.uid"]
    assert paths(kinds.POD, {**old, "finalizers": ["a/b", "c/d"]}, old) == ["metadata.finalizers"]
