"""The rules and columns of our schemas, run by our own engine over small objects."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from trainwright.api.crds import COLUMNS
from trainwright.api.kinds import CUSTOM_KINDS, JOBSET, TRAINING_RUNTIME, TRAINJOB, Kind
from trainwright.api.schemas.registry import schema_of
from trainwright.schema.columns import compile_path
from trainwright.schema.defaulting import apply_defaults
from trainwright.schema.pruning import prune
from trainwright.schema.rules import find_rule_compile_errors, find_rule_errors
from trainwright.schema.validation import find_schema_errors


def root_of(kind: Kind) -> dict[str, Any]:
    schema = schema_of(kind)
    assert schema is not None
    return schema


def make(kind: Kind, spec: str, name: str = "one") -> dict[str, Any]:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": yaml.safe_load(spec),
    }


def find_errors(kind: Kind, obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    schema = root_of(kind)
    kept, dropped = prune(schema, obj)
    assert dropped == ()
    kept = apply_defaults(schema, kept)
    before = apply_defaults(schema, old) if old else None
    errors = [*find_schema_errors(schema, kept), *find_rule_errors(schema, kept, before)]
    return [f"{error.path}: {error.reason.name}" for error in errors]


@pytest.mark.parametrize("kind", CUSTOM_KINDS, ids=lambda kind: kind.resource)
def test_every_rule_compiles(kind: Kind) -> None:
    assert find_rule_compile_errors(root_of(kind)) == []


def test_every_column_has_a_path_that_can_be_read() -> None:
    for columns in COLUMNS.values():
        for column in columns:
            assert compile_path(column["jsonPath"])


REF = "runtimeRef: {name: torch-distributed}"
JOB = "{name: node, template: {spec: {template: {spec: {containers: [{name: node}]}}}}}"


@pytest.mark.parametrize(
    ("kind", "name", "spec", "wanted"),
    [
        (TRAINJOB, "a", f"{{{REF}}}", []),
        (TRAINJOB, "9a", f"{{{REF}}}", ["<nil>: INVALID"]),
        (TRAINJOB, "a" * 63, f"{{{REF}}}", []),
        (TRAINJOB, "a" * 64, f"{{{REF}}}", ["<nil>: INVALID"]),
        (
            TRAINJOB,
            "a",
            f"{{{REF}, initializer: {{dataset: {{storageUri: 's3://'}}}}}}",
            ["spec.initializer.dataset.storageUri: INVALID"],
        ),
        (TRAINJOB, "a", f"{{{REF}, initializer: {{model: {{storageUri: 'hf://a/b'}}}}}}", []),
        (TRAINJOB, "a", f"{{{REF}, managedBy: acme.io/x}}", ["spec.managedBy: INVALID"]),
        (TRAINJOB, "a", f"{{{REF}, trainer: {{numProcPerNode: auto, numNodes: -2}}}}", []),
        (TRAINJOB, "a", "{suspend: true}", ["spec.runtimeRef: REQUIRED"]),
        (TRAINING_RUNTIME, "a", "{mlPolicy: {torch: {}, numNodes: 2}}", []),
        (TRAINING_RUNTIME, "a", "{mlPolicy: {torch: {}, jax: {}}}", ["spec.mlPolicy: INVALID"]),
        (
            TRAINING_RUNTIME,
            "a",
            "{mlPolicy: {torch: {envInjection: {targets: [{jobName: j, containerNames: [node]}]}}}}",
            ["spec.mlPolicy.torch.envInjection.targets[0].containerNames: INVALID"],
        ),
        (TRAINING_RUNTIME, "a", "{}", ["spec: INVALID"]),
        (JOBSET, "a", f"{{replicatedJobs: [{JOB}]}}", []),
        (
            JOBSET,
            "a",
            "{startupPolicy: {startupPolicyOrder: InOrder}, replicatedJobs: [{name: b, template: {},"
            " dependsOn: [{name: a, status: Ready}]}]}",
            ["spec: INVALID"],
        ),
        (
            JOBSET,
            "a",
            "{volumeClaimPolicies: [{templates: [{metadata: {namespace: x}, spec: {}}]}]}",
            ["spec.volumeClaimPolicies[0].templates[0]: INVALID"],
        ),
    ],
)
def test_rule_refuses_what_it_is_for(kind: Kind, name: str, spec: str, wanted: list[str]) -> None:
    assert find_errors(kind, make(kind, spec, name)) == wanted


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (
            f"{{{REF}, trainer: {{image: a}}}}",
            f"{{{REF}, trainer: {{image: b}}}}",
            ["spec.trainer"],
        ),
        (f"{{{REF}, trainer: {{image: a}}}}", f"{{{REF}}}", []),
        (f"{{{REF}}}", f"{{{REF}, trainer: {{image: b}}}}", []),
        (f"{{{REF}}}", "{runtimeRef: {name: other}}", ["spec.runtimeRef"]),
        (
            f"{{{REF}, activeDeadlineSeconds: 5}}",
            f"{{{REF}, activeDeadlineSeconds: 6, suspend: true}}",
            ["spec.activeDeadlineSeconds"],
        ),
    ],
    ids=["changed", "removed", "added", "another runtime", "another deadline"],
)
def test_frozen_field_may_not_be_changed_but_come_and_go(
    before: str, after: str, wanted: list[str]
) -> None:
    errors = find_errors(TRAINJOB, make(TRAINJOB, after), make(TRAINJOB, before))
    assert errors == [f"{path}: INVALID" for path in wanted]
