from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.core.job.factories import (
    EARLIER,
    NOW,
    STAMP,
    make_job,
    make_memory,
    make_pod,
    observe,
)
from trainwright.core.job.plan import plan_job
from trainwright.core.plan import Create, Delete, Patch, Plan
from trainwright.merge.merge_patch import apply_merge_patch


def plan(job: dict[str, Any], *pods: dict[str, Any], later_s: float = 0) -> Plan:
    return plan_job(observe(job, *pods), NOW + timedelta(seconds=later_s), memory=make_memory())


def created(plan: Plan) -> list[str]:
    return [a.obj["metadata"]["name"] for a in plan.actions if isinstance(a, Create)]


def deleted(plan: Plan) -> list[str]:
    return [a.name for a in plan.actions if isinstance(a, Delete)]


def released(plan: Plan) -> list[str]:
    return [
        a.name
        for a in plan.actions
        if isinstance(a, Patch) and a.patch == {"metadata": {"finalizers": None}}
    ]


def status(plan: Plan) -> dict[str, Any]:
    assert plan.status is not None
    changes: dict[str, Any] = plan.status.patch["status"]
    return changes


def conditions(plan: Plan) -> list[tuple[str, str]]:
    return [
        (c["type"], c["reason"])
        for c in status(plan).get("conditions", [])
        if c["status"] == "True"
    ]


def with_status(job: dict[str, Any], plan: Plan) -> dict[str, Any]:
    return {**job, "status": apply_merge_patch(job["status"], status(plan))}


def test_new_job_makes_its_pods_and_starts_the_clock() -> None:
    result = plan(make_job(status={}))
    assert created(result) == ["j-0-aaaa0", "j-1-aaaa1"]
    assert status(result) == {
        "startTime": STAMP,
        "ready": 0,
        "terminating": 0,
        "uncountedTerminatedPods": {},
    }
    assert [e.reason for e in result.events] == ["SuccessfulCreate"] * 2


def test_pods_in_flight_are_not_made_twice_when_the_lister_lags() -> None:
    memory, job = make_memory(), make_job(completions=None, completionMode="NonIndexed")
    first = plan_job(observe(job), NOW, memory=memory)
    again = plan_job(observe(job), NOW, memory=memory)
    assert created(first) == created(again) == ["j-aaaa0", "j-aaaa1"]
    pod = make_pod(job, -1)
    pod["metadata"]["name"] = "j-aaaa0"
    assert created(plan_job(observe(job, pod), NOW, memory=memory)) == ["j-aaaa1"]


def test_running_pods_are_counted() -> None:
    job = make_job()
    result = plan(job, make_pod(job, 0, ready=True), make_pod(job, 1, phase="Pending"))
    assert result.actions == ()
    assert status(result)["active"] == 2
    assert status(result)["ready"] == 1
    assert (
        plan(with_status(job, result), make_pod(job, 0, ready=True), make_pod(job, 1)).status
        is None
    )


def test_indexed_job_completes_when_every_index_succeeded() -> None:
    job = make_job()
    half = plan(job, make_pod(job, 0, phase="Succeeded"), make_pod(job, 1))
    assert status(half)["completedIndexes"] == "0"
    assert status(half)["succeeded"] == 1
    assert released(half) == []
    job = with_status(job, half)
    assert released(plan(job, make_pod(job, 0, phase="Succeeded"), make_pod(job, 1))) == ["j-p0"]
    result = plan(job, *(make_pod(job, i, phase="Succeeded") for i in (0, 1)))
    assert status(result)["completedIndexes"] == "0,1"
    assert conditions(result) == [
        ("SuccessCriteriaMet", "CompletionsReached"),
        ("Complete", "CompletionsReached"),
    ]
    assert status(result)["completionTime"] == STAMP
    assert result.events[-1].reason == "Completed"
    done = plan(with_status(job, result), *(make_pod(job, i, phase="Succeeded") for i in (0, 1)))
    assert released(done) == ["j-p0", "j-p1"]


def test_failed_pod_is_counted_in_three_steps() -> None:
    job = make_job(completions=1, parallelism=1, completionMode="NonIndexed")
    pod = make_pod(job, -1, uid="x", phase="Failed", ended=STAMP)
    written = plan(job, pod)
    assert status(written)["uncountedTerminatedPods"] == {"failed": ["x"]}
    assert "failed" not in status(written)
    assert (released(written), created(written), written.requeue_after_s) == ([], [], 10)
    job = with_status(job, written)
    freed = plan(job, pod)
    assert (released(freed), freed.status) == (["j-x"], None)
    moved = plan(job, make_pod(job, -1, uid="x", phase="Failed", tracked=False, ended=STAMP))
    assert status(moved) == {"uncountedTerminatedPods": {"failed": None}, "failed": 1}
    assert plan(job).status is not None, "a pod that is gone counts as well"


def test_replacements_wait_twice_as_long_after_each_failure() -> None:
    job = make_job(completions=1, parallelism=1, backoffLimit=9)
    pods = [make_pod(job, 0, uid=f"x{i}", phase="Failed", ended=STAMP) for i in range(3)]
    assert plan(job, *pods[:2]).requeue_after_s == 20
    assert created(plan(job, *pods, later_s=39)) == []
    assert created(plan(job, *pods, later_s=40)) == ["j-0-aaaa0"]


@pytest.mark.parametrize(
    ("spec", "pods", "reason"),
    [
        ({"backoffLimit": 0}, [{"phase": "Failed"}], "BackoffLimitExceeded"),
        ({"backoffLimit": 1}, [{"phase": "Failed"}], None),
        ({"backoffLimit": 1}, [{"phase": "Failed"}, {"deleting": True}], "BackoffLimitExceeded"),
        (
            {"backoffLimit": 3, "template": {"spec": {"restartPolicy": "OnFailure"}}},
            [{"restarts": 2}, {"restarts": 1}],
            "BackoffLimitExceeded",
        ),
        (
            {"backoffLimit": 4, "template": {"spec": {"restartPolicy": "OnFailure"}}},
            [{"restarts": 2}, {"restarts": 1}],
            None,
        ),
        ({"activeDeadlineSeconds": 245}, [], "DeadlineExceeded"),
        ({"activeDeadlineSeconds": 246}, [], None),
        (
            {"backoffLimitPerIndex": 1, "maxFailedIndexes": 0},
            [{"phase": "Failed", "failures": 1}],
            "MaxFailedIndexesExceeded",
        ),
        (
            {"backoffLimitPerIndex": 0},
            [{"phase": "Failed"}, {"phase": "Succeeded"}],
            "FailedIndexes",
        ),
        ({"backoffLimitPerIndex": 1}, [{"phase": "Failed"}], None),
    ],
)
def test_reasons_to_fail(
    spec: dict[str, Any], pods: list[dict[str, Any]], reason: str | None
) -> None:
    job = make_job(**spec)
    result = plan(job, *(make_pod(job, i, **fields) for i, fields in enumerate(pods)))
    found = [r for kind, r in conditions(result) if kind == "FailureTarget"]
    assert found == ([reason] if reason else [])


def test_failing_job_stops_its_pods_before_it_is_failed() -> None:
    job = make_job(backoffLimit=0)
    target = plan(job, make_pod(job, 0, phase="Failed"), make_pod(job, 1))
    assert deleted(target) == ["j-p1"]
    assert conditions(target) == [("FailureTarget", "BackoffLimitExceeded")]
    job = with_status(job, target)
    gone = make_pod(job, 0, phase="Failed", tracked=False)
    stopping = plan(job, gone, make_pod(job, 1, deleting=True))
    assert conditions(stopping) == []
    job = with_status(job, stopping)
    assert job["status"]["uncountedTerminatedPods"] == {"failed": ["p1"]}
    waiting = plan(job, gone, make_pod(job, 1, deleting=True, tracked=False))
    job = with_status(job, waiting)
    assert job["status"]["failed"] == 2
    failed = plan(job, gone)
    assert ("Failed", "BackoffLimitExceeded") in conditions(failed)
    assert failed.events[-1].reason == "BackoffLimitExceeded"


RULES = [
    {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
    {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}},
]


def test_failure_policy_fails_the_job_with_a_message_that_names_the_code() -> None:
    job = make_job(podFailurePolicy={"rules": RULES}, podReplacementPolicy="Failed")
    result = plan(job, make_pod(job, 0, phase="Failed", code=42), make_pod(job, 1))
    assert conditions(result) == [("FailureTarget", "PodFailurePolicy")]
    message = status(result)["conditions"][0]["message"]
    assert message == (
        "Container c for pod team/j-p0 failed with exit code 42 matching FailJob rule at index 0"
    )


def test_ignored_failure_is_released_without_being_counted() -> None:
    job = make_job(podFailurePolicy={"rules": RULES}, podReplacementPolicy="Failed", backoffLimit=0)
    result = plan(job, make_pod(job, 0, phase="Failed", code=7), make_pod(job, 1))
    assert released(result) == ["j-p0"]
    assert status(result)["uncountedTerminatedPods"] == {}
    assert created(result) == ["j-0-aaaa0"]


def test_terminating_pod_is_replaced_only_after_its_end_when_asked() -> None:
    job = make_job(podReplacementPolicy="Failed")
    pods = [make_pod(job, 0, deleting=True), make_pod(job, 1)]
    assert created(plan(job, *pods, later_s=60)) == []
    eager = make_job()
    assert created(plan(eager, *pods, later_s=60)) == ["j-0-aaaa0"]


def test_success_policy_ends_the_job_without_counting_the_rest_as_failed() -> None:
    job = make_job(successPolicy={"rules": [{"succeededIndexes": "0"}]})
    result = plan(job, make_pod(job, 0, phase="Succeeded"), make_pod(job, 1))
    assert conditions(result) == [("SuccessCriteriaMet", "SuccessPolicy")]
    assert (released(result), deleted(result)) == (["j-p1"], ["j-p1"])
    job = with_status(job, result)
    done = plan(job, make_pod(job, 0, phase="Succeeded"))
    assert ("Complete", "SuccessPolicy") in conditions(done)
    assert "failed" not in status(done)


def test_suspend_stops_pods_uncounted_and_resume_starts_the_clock_anew() -> None:
    job = make_job(suspend=True)
    result = plan(job, make_pod(job, 0), make_pod(job, 1, deleting=True))
    assert released(result) == ["j-p1", "j-p0"]
    assert deleted(result) == ["j-p0"]
    assert status(result)["startTime"] is None
    assert status(result)["uncountedTerminatedPods"] == {}
    assert conditions(result) == [("Suspended", "JobSuspended")]
    job = with_status(job, result)
    job["spec"] = {**job["spec"], "suspend": False}
    resumed = plan(job)
    assert status(resumed)["startTime"] == STAMP
    assert status(resumed)["conditions"][0]["reason"] == "JobResumed"
    assert created(resumed) == ["j-0-aaaa0", "j-1-aaaa1"]


def test_duplicates_strays_and_too_many_pods_are_stopped_first() -> None:
    job = make_job()
    pods = [
        make_pod(job, 0, uid="new", phase="Pending"),
        make_pod(job, 0, uid="old", ready=True),
        make_pod(job, 7, uid="far"),
        make_pod(job, 1, uid="stray", tracked=False),
    ]
    result = plan(job, *pods)
    assert sorted(deleted(result)) == ["j-far", "j-new", "j-stray"]
    assert created(result) == []
    narrow = make_job(parallelism=1)
    assert deleted(plan(narrow, make_pod(job, 0), make_pod(job, 1, phase="Pending"))) == ["j-p1"]


def test_work_queue_makes_no_more_pods_after_a_success() -> None:
    job = make_job(completions=None, completionMode="NonIndexed", parallelism=3)
    pods = [make_pod(job, -1, uid="a", phase="Succeeded"), make_pod(job, -1, uid="b")]
    assert created(plan(job, *pods)) == []
    del job["spec"]["completions"]
    done = plan(job, make_pod(job, -1, uid="a", phase="Succeeded", tracked=True))
    assert conditions(done) == [("SuccessCriteriaMet", "CompletionsReached")]


@pytest.mark.parametrize("field", ["deletionTimestamp", "finished"])
def test_pods_of_an_ended_job_are_let_go(field: str) -> None:
    job = make_job(ttlSecondsAfterFinished=240)
    pod = make_pod(job, 0, phase="Succeeded")
    if field == "finished":
        ended = {"type": "Complete", "status": "True", "lastTransitionTime": EARLIER}
        job["status"]["conditions"] = [ended]
    else:
        job["metadata"][field] = STAMP
    result = plan(job, pod)
    assert released(result) == ["j-p0"]
    assert result.status is None
    assert deleted(result) == (["j"] if field == "finished" else [])


def test_job_of_another_controller_is_left_alone() -> None:
    assert plan(make_job(managedBy="acme.io/x", status={})) == Plan()
