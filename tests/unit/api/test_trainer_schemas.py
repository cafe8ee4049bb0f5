"""TrainJob and the runtimes compared with literal tables of defaults, bounds and rules."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.api.test_schemas import find, walk
from trainwright.api.kinds import CLUSTER_TRAINING_RUNTIME, TRAINING_RUNTIME, TRAINJOB
from trainwright.api.schemas.registry import schema_of

IMM = "self == oldSelf"
OLD = ("podSpecOverrides", "podTemplateOverrides", "labels", "annotations")

TJ = ("TrainJob", "spec")
PATCHES = (*TJ, "runtimePatches")
PATCHED = (*PATCHES, "trainingRuntimeSpec", "template", "spec", "replicatedJobs")
POD_PATCH = (*PATCHED, "template", "spec", "template", "spec")
STATUS = ("TrainJob", "status")
RT = ("TrainingRuntime", "spec")


def rules_of(node: dict[str, Any]) -> list[str]:
    return [rule["rule"] for rule in node.get("x-kubernetes-validations", [])]


def test_every_rule_of_a_trainjob_outside_old_fields_is_known() -> None:
    schema = schema_of(TRAINJOB)
    assert schema is not None
    seen = {
        path: rules_of(node)
        for path, node in walk(schema)
        if rules_of(node) and not any(f".spec.{field}" in path for field in OLD)
    }
    patch = "$.spec.runtimePatches[]"
    pod = f"{patch}.trainingRuntimeSpec.template.spec.replicatedJobs[].template.spec.template.spec"
    uri = "self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')"
    assert seen == {
        "$": [
            "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            "size(self.metadata.name) <= 63",
        ],
        "$.spec.runtimeRef": [IMM],
        "$.spec.initializer": [IMM],
        "$.spec.initializer.dataset.storageUri": [uri],
        "$.spec.initializer.model.storageUri": [uri],
        "$.spec.trainer": [IMM],
        "$.spec.activeDeadlineSeconds": [IMM],
        "$.spec.managedBy": [
            "self in ['trainer.kubeflow.org/trainjob-controller', 'kueue.x-k8s.io/multikueue']",
            IMM,
        ],
        f"{patch}.manager": [IMM],
        f"{pod}.serviceAccountName": [IMM],
        f"{pod}.volumes": [IMM],
        f"{pod}.initContainers": [IMM],
        f"{pod}.containers": [IMM],
        f"{pod}.imagePullSecrets": [IMM],
        f"{pod}.securityContext": [IMM],
        f"{pod}.terminationGracePeriodSeconds": [IMM],
        "$.status.trainerStatus": ["has(self.lastUpdatedTime)"],
    }


@pytest.mark.parametrize(
    ("path", "facets"),
    [
        ((*TJ, "runtimeRef", "name"), {"minLength": 1, "maxLength": 253}),
        (
            (*TJ, "runtimeRef", "apiGroup"),
            {"maxLength": 253, "default": "trainer.kubeflow.org"},
        ),
        (
            (*TJ, "runtimeRef", "kind"),
            {"maxLength": 253, "default": "ClusterTrainingRuntime", "enum": None},
        ),
        ((*TJ, "initializer", "dataset", "storageUri"), {"maxLength": 2048}),
        (
            (*TJ, "initializer", "model", "env"),
            {"maxItems": 128, "x-kubernetes-list-map-keys": ["name"]},
        ),
        (
            (*TJ, "initializer", "model", "secretRef"),
            {"x-kubernetes-map-type": "atomic"},
        ),
        ((*TJ, "initializer", "model", "secretRef", "name"), {"default": ""}),
        ((*TJ, "trainer", "image"), {"maxLength": 500}),
        ((*TJ, "trainer", "command"), {"maxItems": 128, "x-kubernetes-list-type": "atomic"}),
        ((*TJ, "trainer", "env"), {"maxItems": 128, "x-kubernetes-list-map-keys": ["name"]}),
        ((*TJ, "trainer", "numNodes"), {"minimum": None, "format": "int32"}),
        ((*TJ, "suspend"), {"default": False}),
        ((*TJ, "activeDeadlineSeconds"), {"minimum": 1, "format": "int64"}),
        (
            (*TJ, "managedBy"),
            {"maxLength": 253, "default": "trainer.kubeflow.org/trainjob-controller"},
        ),
        (PATCHES, {"maxItems": 16, "x-kubernetes-list-map-keys": ["manager"]}),
        ((*PATCHES, "manager"), {"minLength": 1, "maxLength": 253}),
        (PATCHED, {"maxItems": 100, "x-kubernetes-list-map-keys": ["name"]}),
        ((*PATCHED, "name"), {"minLength": 1, "maxLength": 253}),
        ((*POD_PATCH, "serviceAccountName"), {"maxLength": 253}),
        ((*POD_PATCH, "volumes"), {"maxItems": 128, "x-kubernetes-list-map-keys": ["name"]}),
        ((*POD_PATCH, "containers"), {"maxItems": 64, "x-kubernetes-list-map-keys": ["name"]}),
        ((*POD_PATCH, "imagePullSecrets"), {"maxItems": 64}),
        ((*POD_PATCH, "terminationGracePeriodSeconds"), {"minimum": 0}),
        ((*POD_PATCH, "tolerations"), {"maxItems": 128, "x-kubernetes-list-type": "atomic"}),
        ((*POD_PATCH, "schedulingGates"), {"maxItems": 16}),
        (
            (*POD_PATCH, "containers", "volumeMounts"),
            {"maxItems": 128, "x-kubernetes-list-map-keys": ["name"]},
        ),
        ((*POD_PATCH, "containers", "env"), {"maxItems": 128}),
        (STATUS, {"minProperties": 1}),
        ((*STATUS, "conditions"), {"maxItems": 8, "x-kubernetes-list-map-keys": ["type"]}),
        ((*STATUS, "conditions", "type"), {"maxLength": 316}),
        ((*STATUS, "conditions", "status"), {"enum": ["True", "False", "Unknown"]}),
        ((*STATUS, "conditions", "reason"), {"minLength": 1, "maxLength": 1024}),
        ((*STATUS, "conditions", "message"), {"maxLength": 32768}),
        ((*STATUS, "conditions", "observedGeneration"), {"minimum": 0}),
        ((*STATUS, "jobsStatus"), {"maxItems": 100, "x-kubernetes-list-map-keys": ["name"]}),
        ((*STATUS, "jobsStatus", "active"), {"minimum": 0}),
        ((*STATUS, "trainerStatus", "progressPercentage"), {"minimum": 0, "maximum": 100}),
        ((*STATUS, "trainerStatus", "metrics"), {"maxItems": 256}),
        ((*STATUS, "trainerStatus", "metrics", "value"), {"minLength": 1, "maxLength": 64}),
        (RT, {"minProperties": 1}),
        ((*RT, "template"), {"minProperties": 1}),
        (
            (*RT, "mlPolicy", "torch", "envInjection", "targets"),
            {"maxItems": 16, "x-kubernetes-list-map-keys": ["jobName"]},
        ),
        (
            (*RT, "mlPolicy", "torch", "envInjection", "targets", "containerNames"),
            {"minItems": 1, "maxItems": 8, "x-kubernetes-list-type": "set"},
        ),
        ((*RT, "mlPolicy", "mpi", "numProcPerNode"), {"default": 1}),
        (
            (*RT, "mlPolicy", "mpi", "mpiImplementation"),
            {"default": "OpenMPI", "enum": ["OpenMPI", ""]},
        ),
        (
            (*RT, "mlPolicy", "mpi", "sshAuthMountPath"),
            {"default": "/root/.ssh", "maxLength": 4096},
        ),
        ((*RT, "mlPolicy", "mpi", "runLauncherAsNode"), {"default": False}),
        ((*RT, "mlPolicy", "flux", "numProcPerNode"), {"default": 1}),
        ((*RT, "podGroupPolicy", "coscheduling", "scheduleTimeoutSeconds"), {"default": 60}),
        (
            (*RT, "podGroupPolicy", "volcano", "networkTopology", "mode"),
            {"default": "hard", "enum": ["hard", "soft"]},
        ),
        (
            (*RT, "podGroupPolicy", "volcano", "networkTopology", "highestTierAllowed"),
            {"default": 1},
        ),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else "",
)
def test_field_has_the_bounds_and_defaults_of_the_contract(
    path: tuple[str, ...], facets: dict[str, Any]
) -> None:
    node = find(*path)
    assert {key: node.get(key) for key in facets} == facets


@pytest.mark.parametrize(
    ("path", "required"),
    [
        (("TrainJob",), None),
        (TJ, ["runtimeRef"]),
        ((*TJ, "runtimeRef"), ["name"]),
        ((*STATUS, "trainerStatus"), None),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else "",
)
def test_only_what_the_contract_names_is_required(
    path: tuple[str, ...], required: list[str] | None
) -> None:
    assert find(*path).get("required") == required


def test_every_rule_of_a_runtime_is_known() -> None:
    schema = schema_of(TRAINING_RUNTIME)
    assert schema is not None
    seen = {path: rules_of(node) for path, node in walk(schema) if rules_of(node)}
    jobset = "$.spec.template.spec"
    spec_rules = seen.pop(jobset)
    assert len(spec_rules) == 1
    assert "InOrder" in spec_rules[0]
    (policy_rule,) = seen.pop("$.spec.mlPolicy")
    assert all(f"self.{name}" in policy_rule for name in ("torch", "mpi", "jax", "xgboost", "flux"))
    (claim_rule,) = seen.pop(f"{jobset}.volumeClaimPolicies[].templates[]")
    assert "namespace" in claim_rule
    assert seen == {
        "$.spec.mlPolicy.torch.envInjection.targets[].containerNames": [
            "self.all(name, name != 'node')"
        ],
        "$.spec.mlPolicy.mpi.numProcPerNode": ["self >= 1"],
        "$.spec.mlPolicy.flux.numProcPerNode": ["self >= 1"],
        f"{jobset}.replicatedJobs[].dependsOn": [IMM],
        f"{jobset}.network": [IMM],
        f"{jobset}.successPolicy": [IMM],
        f"{jobset}.failurePolicy": [IMM],
        f"{jobset}.startupPolicy": [IMM],
        f"{jobset}.volumeClaimPolicies": [IMM],
    }


def test_both_runtimes_have_one_spec() -> None:
    one, other = schema_of(TRAINING_RUNTIME), schema_of(CLUSTER_TRAINING_RUNTIME)
    assert one is not None
    assert other is not None
    assert one["properties"]["spec"] is other["properties"]["spec"]
    assert "status" not in one["properties"]


def test_patch_levels_have_no_further_fields() -> None:
    assert set(find(*PATCHES)["items"]["properties"]) == {"manager", "time", "trainingRuntimeSpec"}
    assert set(find(*PATCHED)["items"]["properties"]) == {"name", "template"}
    assert set(find(*POD_PATCH)["properties"]) == {
        "serviceAccountName", "volumes", "initContainers", "containers", "imagePullSecrets",
        "securityContext", "terminationGracePeriodSeconds", "nodeSelector", "affinity",
        "tolerations", "schedulingGates",
    }  # fmt: skip
    assert set(find(*POD_PATCH, "containers")["items"]["properties"]) == {
        "name", "env", "volumeMounts", "securityContext",
    }  # fmt: skip


@pytest.mark.parametrize("field", OLD)
def test_fields_of_older_trainers_are_let_in_to_be_converted(field: str) -> None:
    assert "onverted to runtimePatches" in find(*TJ, field)["description"]


def test_processes_per_node_may_be_a_word_of_older_trainers() -> None:
    assert find(*TJ, "trainer", "numProcPerNode")["x-kubernetes-int-or-string"] is True
