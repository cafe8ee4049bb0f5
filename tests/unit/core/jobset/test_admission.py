from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.core.jobset.factories import NOW, make_jobset, make_replicated_job
from trainwright.api.kinds import JOBSET
from trainwright.core.admission import Request
from trainwright.core.jobset.admission import default_jobset, validate_jobset

if TYPE_CHECKING:
    from collections.abc import Callable


def request(new: dict[str, Any], old: dict[str, Any] | None = None) -> Request:
    return Request(kind=JOBSET, new=new, old=old, lookup=lambda *_: None, now=NOW)


def refusals(new: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [error.path for error in validate_jobset(request(new, old)).errors]


def test_defaults_of_a_bare_jobset() -> None:
    job = {"name": "a", "template": {"spec": {}}}
    bare = {
        "metadata": {"name": "x"},
        "spec": {"replicatedJobs": [job], "failurePolicy": {"rules": [{"action": "FailJobSet"}]}},
    }
    before = copy.deepcopy(bare)
    assert default_jobset(request(bare))["spec"] == {
        "replicatedJobs": [
            {
                "name": "a",
                "template": {
                    "spec": {
                        "completionMode": "Indexed",
                        "template": {"spec": {"restartPolicy": "OnFailure"}},
                    }
                },
            }
        ],
        "failurePolicy": {"rules": [{"action": "FailJobSet", "name": "failurePolicyRule0"}]},
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "successPolicy": {"operator": "All"},
        "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
    }
    assert bare == before
    assert default_jobset(request(bare, old=bare)) == bare


A, B = make_replicated_job("a", replicas=2), make_replicated_job("b")


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ({}, []),
        ({"replicatedJobs": [{**A, "dependsOn": []}]}, ["spec.replicatedJobs[0].dependsOn"]),
        (
            {"replicatedJobs": [A, {**B, "dependsOn": [{"name": "c", "status": "Ready"}]}]},
            ["spec.replicatedJobs[1].dependsOn[0].name"],
        ),
        ({"replicatedJobs": [A, {**B, "dependsOn": [{"name": "b", "status": "Ready"}]}]}, []),
        ({"network": {"subdomain": "a.b"}}, ["spec.network.subdomain"]),
        ({"network": {"subdomain": "A"}}, ["spec.network.subdomain"] * 2),
        ({"managedBy": "nodomain"}, ["spec.managedBy"]),
        ({"replicatedJobs": [{**A, "replicas": 2**31}]}, ["spec.replicatedJobs[0]"]),
        ({"replicatedJobs": [{**A, "groupName": "G"}]}, ["spec.replicatedJobs[0].groupName"]),
        ({"replicatedJobs": [{**A, "name": "x" * 60}]}, ["spec.replicatedJobs[0].name"] * 2),
        ({"replicatedJobs": [{**A, "name": "x" * 55}]}, ["spec.replicatedJobs[0].name"]),
        (
            {"successPolicy": {"operator": "All", "targetReplicatedJobs": ["c"]}},
            ["spec.successPolicy.targetReplicatedJobs"],
        ),
        (
            {"failurePolicy": {"restartStrategy": "InPlaceRestart"}},
            ["spec.failurePolicy.restartStrategy"],
        ),
        (
            {
                "failurePolicy": {
                    "rules": [
                        {"name": "1", "action": "FailJobSet"},
                        {"name": "r", "action": "RestartJob"},
                        {"name": "r", "action": "FailJobSet", "onJobFailureReasons": ["X"]},
                    ]
                }
            },
            [
                "spec.failurePolicy.rules[0].name",
                "spec.failurePolicy.rules[1].action",
                "spec.failurePolicy.rules[2].name",
                "spec.failurePolicy.rules[2].onJobFailureReasons",
            ],
        ),
        (
            {"coordinator": {"replicatedJob": "a", "jobIndex": 2, "podIndex": 2}},
            ["spec.coordinator.jobIndex", "spec.coordinator.podIndex"],
        ),
        ({"coordinator": {"replicatedJob": "c"}}, ["spec.coordinator.replicatedJob"]),
    ],
)
def test_refusals_of_a_new_jobset(fields: dict[str, Any], paths: list[str]) -> None:
    assert refusals(make_jobset(**{"replicatedJobs": [A, B], **fields})) == paths


def test_name_that_starts_with_a_digit_is_refused() -> None:
    jobset = make_jobset()
    jobset["metadata"]["name"] = "1js"
    assert refusals(jobset) == ["spec.replicatedJobs[0].name"] * 2


def test_self_dependency_is_accepted_with_a_warning() -> None:
    b = {**B, "dependsOn": [{"name": "b", "status": "Ready"}]}
    (warning,) = validate_jobset(request(make_jobset(A, b))).warnings
    assert "never starts" in warning


def _select(jobset: dict[str, Any]) -> None:
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pod["spec"]["nodeSelector"] = {"a": "b"}
    pod["metadata"] = {"labels": {"a": "b"}}


def _image(jobset: dict[str, Any]) -> None:
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pod["spec"]["containers"] = [{"name": "c", "image": "other"}]


def _replicas(jobset: dict[str, Any]) -> None:
    jobset["spec"]["replicatedJobs"][0]["replicas"] = 9


def _ttl(jobset: dict[str, Any]) -> None:
    jobset["spec"]["ttlSecondsAfterFinished"] = 9


@pytest.mark.parametrize(
    ("edit", "running", "suspended"),
    [(_select, False, True), (_image, False, False), (_replicas, False, False), (_ttl, True, True)],
)
def test_what_an_update_may_change(
    edit: Callable[[dict[str, Any]], None], running: bool, suspended: bool
) -> None:
    for was, becomes in ((False, False), (True, False), (False, True)):
        old, new = make_jobset(suspend=was), make_jobset(suspend=becomes)
        edit(new)
        accepted = suspended if was or becomes else running
        assert (refusals(new, old) == []) == accepted


def test_managed_by_never_changes() -> None:
    assert refusals(make_jobset(managedBy="a.io/b"), make_jobset()) == ["spec.managedBy"]
