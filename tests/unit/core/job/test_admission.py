from __future__ import annotations

from typing import Any

import pytest

from tests.unit.core.job.factories import NOW
from trainwright.api.kinds import JOB
from trainwright.core.admission import Request
from trainwright.core.job.admission import default_job, validate_job

CONTAINERS = [{"name": "c", "image": "i"}]


def request(new: dict[str, Any], old: dict[str, Any] | None = None) -> Request:
    return Request(kind=JOB, new=new, old=old, lookup=lambda *_: None, now=NOW)


def make(**spec: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": CONTAINERS, "restartPolicy": "Never"},
    }
    job = {"metadata": {"name": "j", "uid": "u"}, "spec": {"template": template, **spec}}
    return default_job(request(job))


def refusals(new: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [error.path for error in validate_job(request(new, old)).errors]


def test_defaults_of_a_bare_job() -> None:
    job = make()
    labels = {
        "a": "b",
        "controller-uid": "u",
        "batch.kubernetes.io/controller-uid": "u",
        "job-name": "j",
        "batch.kubernetes.io/job-name": "j",
    }
    spec = dict(job["spec"])
    assert spec.pop("template")["metadata"]["labels"] == labels
    assert job["metadata"]["labels"] == labels
    assert spec == {
        "completions": 1,
        "parallelism": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "manualSelector": False,
        "podReplacementPolicy": "TerminatingOrFailed",
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}},
    }
    assert refusals(job) == []


def test_defaults_that_depend_on_other_fields() -> None:
    queue = make(parallelism=3)["spec"]
    assert "completions" not in queue
    policy = make(podFailurePolicy={"rules": []}, backoffLimitPerIndex=1)["spec"]
    assert policy["podReplacementPolicy"] == "Failed"
    assert policy["backoffLimit"] == 2147483647


INDEXED = {"completionMode": "Indexed", "completions": 3}
CODES = {"operator": "In", "values": [1]}


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        ({"completionMode": "Indexed", "parallelism": 1}, ["spec.completions"]),
        ({**INDEXED, "parallelism": 100001}, ["spec.parallelism"]),
        ({"parallelism": -1}, ["spec.parallelism"]),
        ({"backoffLimitPerIndex": 1}, ["spec.backoffLimitPerIndex"]),
        ({**INDEXED, "maxFailedIndexes": 1}, ["spec.backoffLimitPerIndex"]),
        (
            {**INDEXED, "maxFailedIndexes": 4, "backoffLimitPerIndex": 1},
            ["spec.maxFailedIndexes"],
        ),
        (
            {"podFailurePolicy": {"rules": [{"action": "FailJob"}]}},
            ["spec.podFailurePolicy.rules[0]"],
        ),
        (
            {"podFailurePolicy": {"rules": [{"action": "FailIndex", "onExitCodes": CODES}]}},
            ["spec.podFailurePolicy.rules[0].action"],
        ),
        (
            {
                "podFailurePolicy": {
                    "rules": [
                        {
                            "action": "Count",
                            "onExitCodes": {
                                "operator": "In", "values": [2, 0], "containerName": "x"
                            },
                        }
                    ]
                }
            },
            [
                "spec.podFailurePolicy.rules[0].onExitCodes.values",
                "spec.podFailurePolicy.rules[0].onExitCodes.values",
                "spec.podFailurePolicy.rules[0].onExitCodes.containerName",
            ],
        ),
        ({**INDEXED, "successPolicy": {"rules": []}}, ["spec.successPolicy.rules"]),
        (
            {**INDEXED, "successPolicy": {"rules": [{"succeededIndexes": "1-3"}, {}]}},
            ["spec.successPolicy.rules[0].succeededIndexes", "spec.successPolicy.rules[1]"],
        ),
        (
            {
                **INDEXED,
                "successPolicy": {"rules": [{"succeededIndexes": "1", "succeededCount": 2}]},
            },
            ["spec.successPolicy.rules[0].succeededCount"],
        ),
        ({"managedBy": "x"}, ["spec.managedBy"]),
    ],
)  # fmt: skip
def test_refusals_of_a_new_job(spec: dict[str, Any], paths: list[str]) -> None:
    assert refusals(make(**spec)) == paths


def test_restart_policy_always_is_refused() -> None:
    job = make(template={"spec": {"containers": CONTAINERS}})
    assert refusals(job) == ["spec.template.spec.restartPolicy"]


def test_label_of_another_job_is_refused() -> None:
    template = {
        "metadata": {"labels": {"job-name": "other"}},
        "spec": {"containers": CONTAINERS, "restartPolicy": "Never"},
    }
    assert refusals(make(template=template)) == ["spec.template.metadata.labels"]


@pytest.mark.parametrize(
    ("before", "after", "paths"),
    [
        ({}, {"suspend": True, "backoffLimit": 1, "ttlSecondsAfterFinished": 1}, []),
        ({}, {"completionMode": "Indexed"}, ["spec.completionMode"]),
        ({}, {"completions": 2}, ["spec.completions"]),
        (INDEXED, {**INDEXED, "completions": 5, "parallelism": 5}, []),
        (INDEXED, {**INDEXED, "completions": 5}, ["spec.completions"]),
    ],
)
def test_what_an_update_may_change(
    before: dict[str, Any], after: dict[str, Any], paths: list[str]
) -> None:
    assert refusals(make(**after), make(**before)) == paths


@pytest.mark.parametrize(
    ("suspended", "field", "value", "accepted"),
    [
        (True, "nodeSelector", {"a": "b"}, True),
        (True, "affinity", {"nodeAffinity": {}}, True),
        (True, "affinity", {"podAffinity": {}}, False),
        (True, "containers", [{**CONTAINERS[0], "resources": {"limits": {"cpu": "1"}}}], True),
        (True, "containers", [{**CONTAINERS[0], "image": "other"}], False),
        (False, "nodeSelector", {"a": "b"}, False),
    ],
)
def test_placement_may_change_only_while_suspended(
    suspended: bool, field: str, value: Any, accepted: bool
) -> None:
    old, new = make(suspend=suspended), make(suspend=False)
    new["spec"]["template"]["spec"][field] = value
    if field == "containers":
        old_container = old["spec"]["template"]["spec"]["containers"][0]
        new["spec"]["template"]["spec"][field] = [{**old_container, **value[0]}]
    assert (refusals(new, old) == []) == accepted
