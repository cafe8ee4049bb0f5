from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.api.trainjob import parse_runtime, parse_trainjob
from trainwright.base.errors import InvalidObject

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
UNKNOWN = st.dictionaries(st.text(min_size=1, max_size=5).map(lambda key: f"x-{key}"), ANYTHING)


def trainjob(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "tj", "namespace": "ml", "uid": "u"},
        "spec": {"runtimeRef": {"name": "rt"}, **spec},
    }


@given(root=UNKNOWN, spec=UNKNOWN, trainer=UNKNOWN, patch=UNKNOWN)
@settings(deadline=None, max_examples=50, derandomize=True)
def test_fields_that_nobody_knows_come_back(root: Any, spec: Any, trainer: Any, patch: Any) -> None:
    given_ = trainjob(
        trainer={"numNodes": 2, **trainer}, runtimePatches=[{"manager": "a/b", **patch}], **spec
    )
    given_.update(root)
    before = copy.deepcopy(given_)
    view = parse_trainjob(given_)
    assert view.to_object() == before
    assert view.spec.trainer is not None
    assert view.spec.trainer.num_nodes == 2


def test_the_object_of_a_view_is_a_copy() -> None:
    view = parse_trainjob(trainjob())
    view.to_object()["metadata"]["name"] = "other"
    assert view.name == "tj"


def test_defaults_are_those_of_the_schema() -> None:
    view = parse_trainjob(trainjob())
    assert view.runtime_ref.key == "ClusterTrainingRuntime.trainer.kubeflow.org"
    assert view.is_ours
    assert not view.is_suspended


def test_a_trainjob_without_spec_names_no_runtime() -> None:
    bare = trainjob()
    del bare["spec"]
    assert parse_trainjob(bare).runtime_ref.key == ""


def test_a_value_of_another_type_is_refused_at_its_path() -> None:
    with pytest.raises(InvalidObject) as caught:
        parse_trainjob(trainjob(trainer={"numNodes": "two"}))
    assert caught.value.errors[0].path == "spec.trainer.numNodes"


def test_another_kind_is_no_runtime() -> None:
    with pytest.raises(InvalidObject, match=r"must be .*TrainingRuntime"):
        parse_runtime(trainjob())
