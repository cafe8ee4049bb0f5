from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.merge.json_patch import PatchError
from trainwright.merge.strategic import apply_strategic_patch

STRATEGY, KEY = "x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key"
ENV: dict[str, Any] = {
    "type": "array",
    STRATEGY: "merge",
    KEY: "name",
    "items": {"type": "object", "properties": {"name": {}, "value": {}}},
}
SCHEMA: dict[str, Any] = {
    "properties": {
        "env": ENV,
        "finalizers": {"type": "array", STRATEGY: "merge", "items": {"type": "string"}},
        "args": {"type": "array", "items": {"type": "string"}},
        "volumes": {**ENV, STRATEGY: "merge,retainKeys"},
        "strategy": {"type": "object", STRATEGY: "retainKeys", "properties": {}},
        "whole": {"type": "object", STRATEGY: "replace"},
        "containers": {
            "type": "array",
            STRATEGY: "merge",
            KEY: "name",
            "items": {"type": "object", "properties": {"env": ENV}},
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    }
}


def env(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


def names(items: Any) -> list[str]:
    return [item["name"] for item in items]


def patched(doc: Any, patch: Any) -> Any:
    before, patch_before = copy.deepcopy(doc), copy.deepcopy(patch)
    result = apply_strategic_patch(doc, patch, SCHEMA)
    assert (doc, patch) == (before, patch_before)
    return result


@pytest.mark.parametrize(
    ("doc", "patch", "result"),
    [
        pytest.param({"labels": {"a": "1"}}, {"labels": {"b": "2"}}, {"labels": {"a": "1", "b": "2"}}, id="maps merge"),
        pytest.param({"labels": {"a": "1"}}, {"labels": {"a": None}}, {"labels": {}}, id="null deletes"),
        pytest.param({}, {"labels": {"a": None, "b": "1"}}, {"labels": {"b": "1"}}, id="null of nothing"),
        pytest.param({"args": ["a"]}, {"args": ["b"]}, {"args": ["b"]}, id="plain lists are replaced"),
        pytest.param({"new": [1], "m": {"x": 1}}, {"new": [2], "m": {"y": 2}}, {"new": [2], "m": {"x": 1, "y": 2}}, id="unknown fields"),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {}}]},
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "A", "valueFrom": {}, "value": "1"}]},
            id="elements merge by field",
        ),
        pytest.param({"env": env("A", "B")}, {"env": [{"name": "A", "$patch": "delete"}]}, {"env": env("B")}, id="delete element"),
        pytest.param({"env": env("A", "B")}, {"env": [{"$patch": "replace"}, *env("C")]}, {"env": env("C")}, id="replace list"),
        pytest.param({"labels": {"a": "1"}}, {"labels": {"$patch": "replace", "b": "2"}}, {"labels": {"b": "2"}}, id="replace map"),
        pytest.param({"labels": {"a": "1"}}, {"labels": {"$patch": "delete"}}, {"labels": {}}, id="delete map"),
        pytest.param({"labels": {"a": "1"}}, {"labels": {"$patch": "merge", "b": "2"}}, {"labels": {"a": "1", "b": "2"}}, id="merge map"),
        pytest.param({"finalizers": ["a", "b"]}, {"finalizers": ["c", "a"]}, {"finalizers": ["c", "a", "b"]}, id="primitive set"),
        pytest.param({"finalizers": ["a", "b"]}, {"$deleteFromPrimitiveList/finalizers": ["a"]}, {"finalizers": ["b"]}, id="primitive deleted"),
        pytest.param(
            {"finalizers": ["a", "b"]},
            {"$setElementOrder/finalizers": ["c", "b"], "finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]},
            {"finalizers": ["c", "b"]},
            id="primitive order and deletion",
        ),
        pytest.param(
            {"strategy": {"type": "R", "rolling": {}}},
            {"strategy": {"$retainKeys": ["type"], "type": "X"}},
            {"strategy": {"type": "X"}},
            id="retain keys",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"volumes": [{"name": "v", "hostPath": {}}]},
            {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {}}]},
            id="retainKeys strategy without directive keeps both",
        ),
        pytest.param({"whole": {"a": 1}}, {"whole": {"b": 2}}, {"whole": {"b": 2}}, id="replace strategy"),
        pytest.param({}, {"env": [*env("A"), {"name": "B", "$patch": "delete"}], "$setElementOrder/env": env("A")}, {"env": env("A")}, id="directives never stay"),
        pytest.param(
            {"containers": [{"name": "c", "env": env("A", "B")}]},
            {"$setElementOrder/containers": env("c"), "containers": [{"name": "c", "$setElementOrder/env": env("B", "A")}]},
            {"containers": [{"name": "c", "env": env("B", "A")}]},
            id="nested order",
        ),
    ],
)  # fmt: skip
def test_strategic_patch(doc: Any, patch: Any, result: Any) -> None:
    assert patched(doc, patch) == result


@pytest.mark.parametrize(
    ("original", "patch", "order"),
    [
        (["INIT_ENV", "DATASET_PATH"], ["INIT_ENV", "NEW"], ["INIT_ENV", "NEW", "DATASET_PATH"]),
        (["A", "B", "C"], ["C", "A"], ["B", "C", "A"]),
        (["A", "B"], ["N"], ["N", "A", "B"]),
        (["A", "B"], ["B"], ["A", "B"]),
        (["A", "B", "C"], ["B", "N"], ["A", "B", "N", "C"]),
        ([], ["B", "A"], ["B", "A"]),
    ],
)
def test_merged_elements_stand_in_the_order_of_the_patch(
    original: list[str], patch: list[str], order: list[str]
) -> None:
    assert names(patched({"env": env(*original)}, {"env": env(*patch)})["env"]) == order


def test_set_element_order_rules_untouched_elements_too() -> None:
    doc = {"env": env("A", "B", "S", "C")}
    patch = {"$setElementOrder/env": env("C", "N", "A"), "env": env("N")}
    assert names(patched(doc, patch)["env"]) == ["B", "S", "C", "N", "A"]


@pytest.mark.parametrize(
    "patch",
    [
        {"env": [{"value": "1"}]},
        {"env": [{"name": "A", "$patch": "explode"}]},
        {"labels": {"$patch": "explode"}},
        {"$setElementOrder/env": [{}]},
        {"$deleteFromPrimitiveList/finalizers": "a"},
        {"strategy": {"$retainKeys": ["a"], "b": 1}},
    ],
)
def test_malformed_patch_is_a_bad_request(patch: Any) -> None:
    doc = {"env": env("A"), "finalizers": ["a"], "labels": {}, "strategy": {"a": 1}}
    with pytest.raises(PatchError) as refused:
        patched(doc, patch)
    assert refused.value.status == 400


ELEMENTS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("ABCDE")}, optional={"value": st.sampled_from("xyz")}
    ),
    max_size=5,
    unique_by=lambda item: item["name"],
)
DOCS = st.fixed_dictionaries(
    {"env": ELEMENTS},
    optional={
        "finalizers": st.lists(st.sampled_from("abc"), unique=True),
        "labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from("12")),
    },
)


@settings(deadline=None, max_examples=200, derandomize=True)
@given(DOCS, DOCS)
def test_applying_a_patch_again_changes_no_content(doc: Any, patch: Any) -> None:
    once = patched(doc, patch)
    twice = patched(once, patch)
    assert sorted(once["env"], key=repr) == sorted(twice["env"], key=repr)
    assert once.get("labels") == twice.get("labels")
    wanted = names(patch["env"])
    assert [name for name in names(once["env"]) if name in wanted] == wanted
