"""TrainJobs of older Trainers: a fixture for each old field, as it was written and as it is kept."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from trainwright.api.kinds import TRAINJOB
from trainwright.api.schemas.registry import schema_of
from trainwright.base.errors import InvalidObject, Reason
from trainwright.core.conversion.trainjob import (
    OLD_FIELDS,
    convert_trainjob,
    find_conversion_errors,
)

CASES: dict[str, tuple[str, str]] = {
    "labels and annotations of the JobSet": (
        """
        labels: {team: vision}
        annotations: {cost: low}
        """,
        """
        runtimePatches:
        - manager: trainwright.dev/converted
          trainingRuntimeSpec:
            template:
              metadata: {labels: {team: vision}, annotations: {cost: low}}
        """,
    ),
    "podSpecOverrides of two jobs": (
        """
        podSpecOverrides:
        - targetJobs: [{name: node}, {name: launcher}]
          nodeSelector: {disk: ssd}
          containers:
          - name: side
            env: [{name: A, value: "1"}]
        """,
        """
        runtimePatches:
        - manager: trainwright.dev/converted
          trainingRuntimeSpec:
            template:
              spec:
                replicatedJobs:
                - name: node
                  template:
                    spec:
                      template:
                        spec: &pod
                          nodeSelector: {disk: ssd}
                          containers:
                          - name: side
                            env: [{name: A, value: "1"}]
                - name: launcher
                  template: {spec: {template: {spec: *pod}}}
        """,
    ),
    "podTemplateOverrides with metadata and spec": (
        """
        podTemplateOverrides:
        - targetJobs: [{name: node}]
          metadata: {labels: {a: b}}
          spec: {serviceAccountName: trainer}
        - targetJobs: [{name: launcher}]
          metadata: {annotations: {c: d}}
        """,
        """
        runtimePatches:
        - manager: trainwright.dev/converted
          trainingRuntimeSpec:
            template:
              spec:
                replicatedJobs:
                - name: node
                  template:
                    spec:
                      template:
                        metadata: {labels: {a: b}}
                        spec: {serviceAccountName: trainer}
                - name: launcher
                  template: {spec: {template: {metadata: {annotations: {c: d}}}}}
        """,
    ),
    "several overrides of one job stay in order": (
        """
        annotations: {x: y}
        podSpecOverrides:
        - targetJobs: [{name: node}]
          nodeSelector: {zone: a}
        - targetJobs: [{name: launcher}]
          nodeSelector: {zone: b}
        - targetJobs: [{name: node}]
          nodeSelector: {zone: c}
        """,
        """
        runtimePatches:
        - manager: trainwright.dev/converted
          trainingRuntimeSpec:
            template:
              metadata: {annotations: {x: y}}
              spec:
                replicatedJobs:
                - name: node
                  template: {spec: {template: {spec: {nodeSelector: {zone: a}}}}}
                - name: launcher
                  template: {spec: {template: {spec: {nodeSelector: {zone: b}}}}}
        - manager: trainwright.dev/converted-2
          trainingRuntimeSpec:
            template:
              spec:
                replicatedJobs:
                - name: node
                  template: {spec: {template: {spec: {nodeSelector: {zone: c}}}}}
        """,
    ),
    "a job named twice in one override is patched once": (
        """
        podSpecOverrides:
        - targetJobs: [{name: node}, {name: node}]
          nodeSelector: {zone: a}
        """,
        """
        runtimePatches:
        - manager: trainwright.dev/converted
          trainingRuntimeSpec:
            template:
              spec:
                replicatedJobs:
                - name: node
                  template: {spec: {template: {spec: {nodeSelector: {zone: a}}}}}
        """,
    ),
    "numProcPerNode auto": (
        "trainer: {numNodes: 2, numProcPerNode: auto}",
        "trainer: {numNodes: 2}",
    ),
    "numProcPerNode gpu": ("trainer: {numProcPerNode: gpu}", "trainer: {}"),
    "numProcPerNode cpu from requests": (
        "trainer: {numProcPerNode: cpu, resourcesPerNode: {requests: {cpu: 2500m}, limits: {cpu: 8}}}",
        "trainer: {numProcPerNode: 3, resourcesPerNode: {requests: {cpu: 2500m}, limits: {cpu: 8}}}",
    ),
    "numProcPerNode cpu from limits": (
        'trainer: {numProcPerNode: cpu, resourcesPerNode: {requests: {cpu: "0"}, limits: {cpu: 500m}}}',
        'trainer: {numProcPerNode: 1, resourcesPerNode: {requests: {cpu: "0"}, limits: {cpu: 500m}}}',
    ),
    "numProcPerNode cpu without CPUs": (
        "trainer: {numProcPerNode: cpu, resourcesPerNode: {limits: {memory: 1Gi}}}",
        "trainer: {resourcesPerNode: {limits: {memory: 1Gi}}}",
    ),
}


def make_trainjob(spec: str | dict[str, Any]) -> dict[str, Any]:
    own = yaml.safe_load(spec) if isinstance(spec, str) else spec
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "old", "namespace": "team"},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, **own},
    }


@pytest.mark.parametrize(("old", "new"), CASES.values(), ids=CASES.keys())
def test_old_field_is_moved_to_where_it_acts(old: str, new: str) -> None:
    sent = make_trainjob(old)
    before = copy.deepcopy(sent)
    converted, warnings = convert_trainjob(sent)
    assert converted == make_trainjob(new)
    assert sent == before
    assert warnings
    assert convert_trainjob(converted) == (converted, [])


def test_every_old_field_has_a_fixture_and_is_let_in_by_the_schema() -> None:
    schema = schema_of(TRAINJOB)
    assert schema is not None
    fields = schema["properties"]["spec"]["properties"]
    for name in OLD_FIELDS:
        assert name in fields
        assert any(name in yaml.safe_load(old) for old, _ in CASES.values())


def test_a_trainjob_of_today_is_handed_back_as_it_is() -> None:
    job = make_trainjob("trainer: {numProcPerNode: 2}")
    converted, warnings = convert_trainjob(job)
    assert converted is job
    assert warnings == []
    assert convert_trainjob({"kind": "TrainJob"}) == ({"kind": "TrainJob"}, [])


def test_empty_old_fields_go_without_a_word() -> None:
    job = make_trainjob("{podSpecOverrides: [], labels: {}, runtimePatches: [{manager: a.io/b}]}")
    assert convert_trainjob(job) == (make_trainjob("runtimePatches: [{manager: a.io/b}]"), [])


@pytest.mark.parametrize(
    ("spec", "reason", "path"),
    [
        (
            "{labels: {a: b}, runtimePatches: [{manager: acme.io/x}]}",
            Reason.FORBIDDEN,
            "spec.labels",
        ),
        (
            "{podSpecOverrides: [{targetJobs: [{name: node}]}], runtimePatches: [{manager: a.io/x}]}",
            Reason.FORBIDDEN,
            "spec.podSpecOverrides",
        ),
        (
            "{podSpecOverrides: [{targetJobs: [{name: node}]}],"
            " podTemplateOverrides: [{targetJobs: [{name: node}]}]}",
            Reason.FORBIDDEN,
            "spec.podSpecOverrides",
        ),
        (
            "podTemplateOverrides: [{targetJobs: [{name: node}]}, {targetJobs: []}]",
            Reason.REQUIRED,
            "spec.podTemplateOverrides[1].targetJobs",
        ),
        ("trainer: {numProcPerNode: many}", Reason.NOT_SUPPORTED, "spec.trainer.numProcPerNode"),
        ('trainer: {numProcPerNode: "2"}', Reason.NOT_SUPPORTED, "spec.trainer.numProcPerNode"),
    ],
    ids=[
        "labels beside patches",
        "overrides beside patches",
        "both kinds of overrides",
        "override without targets",
        "unknown word",
        "number in quotes",
    ],
)
def test_what_cannot_be_converted_is_refused(spec: str, reason: Reason, path: str) -> None:
    job = make_trainjob(spec)
    (error,) = find_conversion_errors(job)
    assert (error.reason, error.path) == (reason, path)
    with pytest.raises(InvalidObject) as raised:
        convert_trainjob(job)
    assert raised.value.errors == (error,)


def test_more_overrides_of_one_job_than_patches_are_allowed_is_refused() -> None:
    override = {"targetJobs": [{"name": "node"}], "nodeSelector": {"a": "b"}}
    job = make_trainjob({"podSpecOverrides": [override] * 17})
    (error,) = find_conversion_errors(job)
    assert (error.reason, error.path) == (Reason.TOO_MANY, "spec.podSpecOverrides")
    assert find_conversion_errors(make_trainjob({"podSpecOverrides": [override] * 16})) == []


def test_old_manifest_can_be_applied_again_after_a_queue_added_its_patch() -> None:
    old_fields = {
        "podSpecOverrides": [{"targetJobs": [{"name": "node"}], "nodeSelector": {"a": "b"}}]
    }
    stored, _ = convert_trainjob(make_trainjob(old_fields))
    queue = {"manager": "kueue.x-k8s.io/manager", "time": "2026-01-01T00:00:00Z"}
    stored["spec"]["runtimePatches"].append(queue)
    again = {**stored, "spec": {**stored["spec"], **old_fields}}
    assert convert_trainjob(again, stored)[0] == stored
    assert find_conversion_errors(again) != []
