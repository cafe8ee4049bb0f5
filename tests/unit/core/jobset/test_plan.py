from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.core.jobset.factories import (
    EARLIER,
    NOW,
    STAMP,
    make_job,
    make_jobset,
    make_replicated_job,
    observe,
)
from trainwright.core.jobset.plan import plan_jobset
from trainwright.core.plan import Create, Delete, Patch, Plan

if TYPE_CHECKING:
    from trainwright.core.jobset.observed import ObservedJobSet


def plan(observed: ObservedJobSet) -> Plan:
    return plan_jobset(observed, NOW)


def created(plan: Plan) -> list[str]:
    return [a.obj["metadata"]["name"] for a in plan.actions if isinstance(a, Create)]


def deleted(plan: Plan) -> list[str]:
    return [a.name for a in plan.actions if isinstance(a, Delete)]


def patched(plan: Plan) -> dict[str, Any]:
    return {a.name: a.patch for a in plan.actions if isinstance(a, Patch)}


def status(plan: Plan) -> dict[str, Any]:
    assert plan.status is not None
    changes: dict[str, Any] = plan.status.patch["status"]
    return changes


def conditions(plan: Plan) -> list[tuple[str, str, str]]:
    return [(c["type"], c["status"], c["reason"]) for c in status(plan)["conditions"]]


TWO = (make_replicated_job("a"), make_replicated_job("b", replicas=2))


def test_new_jobset_gets_service_then_jobs_then_status() -> None:
    result = plan(observe(make_jobset(*TWO), has_service=False))
    assert created(result) == ["js", "js-a-0", "js-b-0", "js-b-1"]
    zero = {"ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}
    assert status(result) == {
        "restarts": 0,
        "replicatedJobsStatus": [{"name": "b", **zero}, {"name": "a", **zero}],
    }


def test_settled_jobset_needs_nothing() -> None:
    jobset = make_jobset(*TWO)
    jobs = [make_job(jobset, "a"), make_job(jobset, "b"), make_job(jobset, "b", 1)]
    jobset["status"] = status(plan(observe(jobset, *jobs)))
    assert plan(observe(jobset, *jobs)) == Plan()


@pytest.mark.parametrize(
    "jobset",
    [
        make_jobset(managedBy="kueue.x-k8s.io/multikueue"),
        {**make_jobset(), "metadata": {"name": "js", "deletionTimestamp": STAMP}},
    ],
    ids=["managed elsewhere", "being deleted"],
)
def test_jobset_that_is_not_ours_is_left_alone(jobset: dict[str, Any]) -> None:
    assert plan(observe(jobset, has_service=False)) == Plan()


def test_name_taken_by_somebody_else_is_an_error_with_an_event() -> None:
    result = plan(observe(make_jobset(), foreign_jobs=frozenset({"js-node-0"})))
    assert created(result) == []
    assert [event.reason for event in result.events] == ["JobCreationFailed"]
    assert "js-node-0" in result.error


def test_jobs_that_wait_for_complete_and_ready() -> None:
    jobset = make_jobset(
        make_replicated_job("a"),
        make_replicated_job("b", dependsOn=[{"name": "a", "status": "Ready"}]),
        make_replicated_job("c", dependsOn=[{"name": "a", "status": "Complete"}]),
    )
    assert created(plan(observe(jobset))) == ["js-a-0"]
    assert created(plan(observe(jobset, make_job(jobset, "a", ready=1)))) == []
    assert created(plan(observe(jobset, make_job(jobset, "a", ready=2)))) == ["js-b-0"]
    done = make_job(jobset, "a", ended="Complete")
    assert created(plan(observe(jobset, done))) == ["js-b-0", "js-c-0"]


def test_in_order_starts_one_after_the_other() -> None:
    jobset = make_jobset(*TWO, startupPolicy={"startupPolicyOrder": "InOrder"})
    first = plan(observe(jobset))
    assert created(first) == ["js-a-0"]
    assert conditions(first) == [
        ("StartupPolicyInProgress", "True", "InOrderStartupPolicyInProgress")
    ]
    jobset["status"] = status(first)
    ready = make_job(jobset, "a", ready=2)
    assert created(plan(observe(jobset, ready))) == ["js-b-0", "js-b-1"]
    others = [make_job(jobset, "b", i, ready=2) for i in (0, 1)]
    assert conditions(plan(observe(jobset, ready, *others))) == [
        ("StartupPolicyInProgress", "False", "InOrderStartupPolicyInProgress"),
        ("StartupPolicyCompleted", "True", "InOrderStartupPolicyCompleted"),
    ]


@pytest.mark.parametrize(
    ("policy", "done", "met"),
    [
        ({"operator": "All"}, ["a"], False),
        ({"operator": "All"}, ["a", "b"], True),
        ({"operator": "All", "targetReplicatedJobs": ["b"]}, ["b"], True),
        ({"operator": "All", "targetReplicatedJobs": ["b"]}, ["a"], False),
        ({"operator": "Any"}, ["a"], True),
        (None, ["a", "b"], True),
    ],
)
def test_success_policy(policy: dict[str, Any] | None, done: list[str], met: bool) -> None:
    jobset = make_jobset(make_replicated_job("a"), make_replicated_job("b"), successPolicy=policy)
    jobs = [make_job(jobset, n, ended="Complete" if n in done else "") for n in ("a", "b")]
    result = plan(observe(jobset, *jobs))
    assert (status(result).get("terminalState") == "Completed") == met
    if met:
        assert conditions(result) == [("Completed", "True", "AllJobsCompleted")]
        assert result.events[0].note == "jobset completed successfully"


def test_ended_jobset_stops_active_jobs_and_keeps_finished_ones() -> None:
    condition = {"type": "Completed", "status": "True", "lastTransitionTime": EARLIER}
    jobset = make_jobset(*TWO, status={"conditions": [condition]}, ttlSecondsAfterFinished=300)
    jobs = [make_job(jobset, "a", ended="Complete"), make_job(jobset, "b")]
    result = plan(observe(jobset, *jobs, has_service=False))
    assert deleted(result) == ["js-b-0"]
    assert created(result) == []
    assert result.requeue_after_s == 55
    jobset["spec"]["ttlSecondsAfterFinished"] = 245
    last = plan(observe(jobset, jobs[0])).actions[-1]
    assert last == Delete(
        kind=last.kind,
        namespace="team",
        name="js",
        uid="u1",
        resource_version="7",
        propagation="Foreground",
    )


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (None, "FailedJobs"),
        ({}, "ReachedMaxRestarts"),
        ({"rules": [{"name": "r", "action": "FailJobSet"}]}, "FailJobSetFailurePolicyAction"),
    ],
)
def test_failed_job_fails_the_jobset(policy: dict[str, Any] | None, reason: str) -> None:
    jobset = make_jobset(*TWO, failurePolicy=policy)
    late = make_job(jobset, "a", ended="Failed", at=STAMP)
    early = make_job(jobset, "b", 1, ended="Failed")
    result = plan(observe(jobset, late, early))
    assert conditions(result) == [("Failed", "True", reason)]
    assert status(result)["terminalState"] == "Failed"
    assert status(result)["conditions"][0]["message"].endswith("(first failed job: js-b-1)")
    assert [(e.type, e.reason) for e in result.events] == [("Warning", reason)]


def test_restart_replaces_every_job_under_the_next_attempt() -> None:
    jobset = make_jobset(make_replicated_job(replicas=2), failurePolicy={"maxRestarts": 1})
    jobs = [make_job(jobset, ended="Failed"), make_job(jobset, index=1, ended="Complete")]
    result = plan(observe(jobset, *jobs))
    assert result.actions == ()
    assert (status(result)["restarts"], status(result)["restartsCountTowardsMax"]) == (1, 1)
    assert conditions(result) == [("RestartingJobSet", "True", "DefaultFailurePolicy")]
    assert [e.reason for e in result.events] == [
        "DefaultFailurePolicy",
        "RestartJobSetFailurePolicyAction",
    ]

    jobset["status"] = status(result)
    assert deleted(plan(observe(jobset, *jobs))) == ["js-node-0", "js-node-1"]
    half = plan(observe(jobset, jobs[1]))
    assert created(half) == ["js-node-0"]
    assert (
        half.actions[-1].obj["metadata"]["labels"][  # type: ignore[union-attr]
            "jobset.sigs.k8s.io/restart-attempt"
        ]
        == "1"
    )

    fresh = [make_job(jobset, index=i, ready=2) for i in (0, 1)]
    assert conditions(plan(observe(jobset, *fresh))) == [("RestartingJobSet", "False", "JobsReady")]
    again = plan(observe(jobset, make_job(jobset, ended="Failed"), fresh[1]))
    assert conditions(again) == [
        ("RestartingJobSet", "False", "JobSetFailed"),
        ("Failed", "True", "ReachedMaxRestarts"),
    ]


def test_blocking_recreate_waits_for_the_last_old_job() -> None:
    policy = {"maxRestarts": 1, "restartStrategy": "BlockingRecreate"}
    jobset = make_jobset(
        make_replicated_job(replicas=2), failurePolicy=policy, status={"restarts": 1}
    )
    old = make_job(jobset, index=1, attempt=0)
    old["metadata"]["deletionTimestamp"] = STAMP
    result = plan(observe(jobset, old))
    assert (created(result), deleted(result)) == ([], [])
    assert created(plan(observe(jobset))) == ["js-node-0", "js-node-1"]


@pytest.mark.parametrize(
    ("rule", "matches"),
    [
        ({"onJobFailureReasons": ["PodFailurePolicy"]}, True),
        ({"onJobFailureReasons": ["DeadlineExceeded"]}, False),
        ({"onJobFailureMessagePatterns": ["exit code 4[0-9]"]}, True),
        ({"onJobFailureMessagePatterns": ["exit code 5", "([("]}, False),
        ({"targetReplicatedJobs": ["b"]}, False),
    ],
)
def test_first_matching_rule_decides(rule: dict[str, Any], matches: bool) -> None:
    action = "RestartJobSetAndIgnoreMaxRestarts"
    policy = {"rules": [{"name": "r1", "action": action, **rule}]}
    jobset = make_jobset(*TWO, failurePolicy=policy)
    job = make_job(
        jobset, "a", ended="Failed", reason="PodFailurePolicy", message="pod exit code 42 matched"
    )
    result = plan(observe(jobset, job))
    if matches:
        assert conditions(result) == [("RestartingJobSet", "True", "FailurePolicy_r1")]
        assert status(result)["restarts"] == 1
        assert "restartsCountTowardsMax" not in status(result)
    else:
        assert conditions(result) == [("Failed", "True", "ReachedMaxRestarts")]


def test_suspend_and_resume() -> None:
    jobset = make_jobset()
    job = make_job(jobset)
    jobset["spec"]["suspend"] = True
    suspended = plan(observe(jobset, job))
    assert patched(suspended) == {"js-node-0": {"spec": {"suspend": True}}}
    assert conditions(suspended) == [("Suspended", "True", "SuspendedJobs")]

    jobset["status"] = status(suspended)
    jobset["spec"]["suspend"] = False
    job["spec"]["suspend"] = True
    job["status"]["startTime"] = EARLIER
    cleared = patched(plan(observe(jobset, job)))
    assert cleared == {"js-node-0": {"status": {"startTime": None}}}

    del job["status"]["startTime"]
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pod["metadata"] = {"labels": {"queue": "q"}}
    pod["spec"]["nodeSelector"] = {"gpu": "yes"}
    pod["spec"]["tolerations"] = [{"key": "k", "operator": "Exists"}]
    resumed = plan(observe(jobset, job))
    assert patched(resumed)["js-node-0"]["spec"] == {
        "suspend": False,
        "template": {
            "metadata": {"labels": {"queue": "q"}},
            "spec": {
                "nodeSelector": {"gpu": "yes"},
                "tolerations": [{"key": "k", "operator": "Exists"}],
            },
        },
    }
    assert conditions(resumed) == [("Suspended", "False", "ResumeJobs")]


def test_jobset_created_suspended_makes_suspended_jobs() -> None:
    result = plan(observe(make_jobset(suspend=True)))
    (job,) = [a.obj for a in result.actions if isinstance(a, Create)]
    assert job["spec"]["suspend"] is True
    assert conditions(result) == [("Suspended", "True", "SuspendedJobs")]


def test_counters_count_jobs() -> None:
    jobset = make_jobset(make_replicated_job(replicas=5))
    jobs = [
        make_job(jobset, index=0, active=2, ready=1, succeeded=1),
        make_job(jobset, index=1, active=2, ready=1),
        make_job(jobset, index=2, ended="Complete"),
        make_job(jobset, index=3, attempt=-1),
        make_job(jobset, index=4),
    ]
    jobs[4]["spec"]["suspend"] = True
    (row,) = status(plan(observe(jobset, *jobs)))["replicatedJobsStatus"]
    assert row == {
        "name": "node", "ready": 1, "succeeded": 1, "failed": 0, "active": 2, "suspended": 1
    }  # fmt: skip
