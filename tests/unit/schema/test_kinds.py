"""The engine over the real schemas: what the API server was seen to refuse, and where."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.api import kinds
from trainwright.api.kinds import KINDS
from trainwright.api.schemas.registry import schema_of
from trainwright.base.errors import FieldError, Reason
from trainwright.schema.defaulting import apply_defaults
from trainwright.schema.pruning import prune
from trainwright.schema.rules import find_rule_compile_errors, find_rule_errors
from trainwright.schema.validation import find_schema_errors

TRAINJOB: dict[str, Any] = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {"name": "a"},
    "spec": {"runtimeRef": {"name": "torch"}},
}


def make_runtime(ml_policy: dict[str, Any], **jobset: Any) -> dict[str, Any]:
    def job(name: str, **more: Any) -> dict[str, Any]:
        pod = {"containers": [{"name": name, "image": "base:1"}]}
        return {"name": name, "template": {"spec": {"template": {"spec": pod}}}, **more}

    jobs = [job("a"), job("b", dependsOn=[{"name": "a", "status": "Ready"}])]
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": "r"},
        "spec": {
            "mlPolicy": ml_policy,
            "template": {"spec": {"replicatedJobs": jobs, **jobset}},
        },
    }


def check(kind: kinds.Kind, obj: Any, old: Any = None) -> list[FieldError]:
    schema = schema_of(kind)
    assert schema is not None
    new = apply_defaults(schema, prune(schema, obj)[0])
    return find_schema_errors(schema, new) or find_rule_errors(schema, new, old)


def found(errors: list[FieldError]) -> list[tuple[str, Reason]]:
    return [(error.path, error.reason) for error in errors]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.qualified_kind)
def test_every_rule_of_every_kind_compiles(kind: kinds.Kind) -> None:
    assert find_rule_compile_errors(schema_of(kind) or {}) == []


@pytest.mark.parametrize(
    ("spec", "path", "reason"),
    [
        ({"runtimeRef": {}}, "spec.runtimeRef.name", Reason.REQUIRED),
        ({"runtimeRef": {"name": ""}}, "spec.runtimeRef.name", Reason.INVALID),
        ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds", Reason.INVALID),
        (
            {"trainer": {"env": [{"name": "A"}, {"name": "A"}]}},
            "spec.trainer.env[1]",
            Reason.DUPLICATE,
        ),
        ({"trainer": {"image": "i" * 501}}, "spec.trainer.image", Reason.TOO_LONG),
        ({"trainer": {"numNodes": "two"}}, "spec.trainer.numNodes", Reason.TYPE_INVALID),
        ({"managedBy": "me"}, "spec.managedBy", Reason.INVALID),
        (
            {"initializer": {"dataset": {"storageUri": "s3://"}}},
            "spec.initializer.dataset.storageUri",
            Reason.INVALID,
        ),
    ],
)
def test_trainjob_is_refused_at(spec: dict[str, Any], path: str, reason: Reason) -> None:
    trainjob = {**TRAINJOB, "spec": {**TRAINJOB["spec"], **spec}}
    assert found(check(kinds.TRAINJOB, trainjob)) == [(path, reason)]


@pytest.mark.parametrize("name", ["9lives", "dot.ted", "a" * 64])
def test_trainjob_name_is_refused_by_a_root_rule(name: str) -> None:
    trainjob = {**TRAINJOB, "metadata": {"name": name}}
    assert found(check(kinds.TRAINJOB, trainjob)) == [("<nil>", Reason.INVALID)]


def test_trainjob_keeps_its_runtime_and_trainer() -> None:
    schema = schema_of(kinds.TRAINJOB)
    assert schema is not None
    old = apply_defaults(schema, {**TRAINJOB, "spec": {**TRAINJOB["spec"], "trainer": {}}})
    assert check(kinds.TRAINJOB, old, old) == []
    new = copy.deepcopy(old)
    new["spec"]["trainer"]["numNodes"] = 2
    new["spec"]["runtimeRef"]["name"] = "other"
    assert sorted(found(check(kinds.TRAINJOB, new, old))) == [
        ("spec.runtimeRef", Reason.INVALID),
        ("spec.trainer", Reason.INVALID),
    ]


def test_runtime_takes_one_policy_and_no_double_order() -> None:
    good = make_runtime({"numNodes": 1, "torch": {}})
    assert check(kinds.TRAINING_RUNTIME, good) == []
    two = make_runtime({"torch": {}, "jax": {}})
    assert found(check(kinds.TRAINING_RUNTIME, two)) == [("spec.mlPolicy", Reason.INVALID)]
    ordered = make_runtime({"torch": {}}, startupPolicy={"startupPolicyOrder": "InOrder"})
    assert found(check(kinds.TRAINING_RUNTIME, ordered)) == [("spec.template.spec", Reason.INVALID)]
    wrong = make_runtime({"torch": {}})
    wrong["spec"]["template"]["spec"]["replicatedJobs"][1]["dependsOn"][0]["status"] = "Done"
    assert found(check(kinds.TRAINING_RUNTIME, wrong)) == [
        ("spec.template.spec.replicatedJobs[1].dependsOn[0].status", Reason.NOT_SUPPORTED)
    ]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "1Gi", "Ready"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "spec", "template", "env", "trainer", "containers", "jobs"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(spec=st.dictionaries(st.sampled_from(["trainer", "runtimeRef", "suspend"]), _JSON))
def test_any_json_is_pruned_and_defaulted_once_and_judged_without_a_fault(spec: Any) -> None:
    schema = schema_of(kinds.TRAINJOB)
    assert schema is not None
    obj = {**TRAINJOB, "spec": spec}
    before = copy.deepcopy(obj)
    pruned, _ = prune(schema, obj)
    defaulted = apply_defaults(schema, pruned)
    assert obj == before
    assert prune(schema, pruned) == (pruned, ())
    assert apply_defaults(schema, defaulted) == defaulted
    if not find_schema_errors(schema, defaulted):
        assert find_rule_errors(schema, defaulted, defaulted) == []
