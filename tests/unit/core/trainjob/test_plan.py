from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import yaml

from tests.unit.core.trainjob.factories import (
    NOW,
    NOW_TEXT,
    make_condition,
    make_job,
    make_jobset,
    make_runtime,
    make_trainjob,
)
from trainwright.api.kinds import CONFIG_MAP, JOBSET, TRAINJOB
from trainwright.api.trainjob import parse_trainjob
from trainwright.base.objects import Object, dig, find_condition
from trainwright.core.plan import Apply, Delete, Plan
from trainwright.core.trainjob.plan import (
    Observed,
    key_of,
    plan_refusal,
    plan_trainjob,
    reads_snapshot,
    record_apply,
)
from trainwright.core.trainjob.runtime import parse_snapshot
from trainwright.core.trainjob.settings import DEFAULT_SETTINGS, TrainJobSettings


def plan(trainjob: Object, **observed: Any) -> Plan:
    return plan_trainjob(Observed(trainjob=trainjob, **observed), DEFAULT_SETTINGS, NOW)


def snapshot_of(trainjob: Object, runtime: Object | None = None) -> Object:
    action = plan(trainjob, runtime=runtime or make_runtime()).actions[0]
    assert isinstance(action, Apply)
    return dict(action.obj)


def applied_jobset(result: Plan) -> Object:
    action = result.actions[-1]
    assert isinstance(action, Apply)
    assert action.kind == JOBSET
    return dict(action.obj)


def conditions_after(trainjob: Object, result: Plan) -> list[Object]:
    status: Object = dict(trainjob.get("status") or {})
    if result.status is not None:
        status |= result.status.patch["status"]
    return list(status.get("conditions") or [])


def test_first_pass_takes_a_snapshot_and_then_makes_the_jobset() -> None:
    trainjob, runtime = make_trainjob(trainer={"numNodes": 2}), make_runtime()
    result = plan(trainjob, runtime=runtime)
    assert [(a.kind, a.uid) for a in result.actions if isinstance(a, Apply)] == [
        (CONFIG_MAP, None),
        (JOBSET, None),
    ]
    snapshot = snapshot_of(trainjob)
    assert snapshot["metadata"]["name"] == "tj-runtime-snapshot"
    assert yaml.safe_load(snapshot["data"]["runtime"]) == runtime
    jobset = applied_jobset(result)
    assert dig(jobset, "metadata", "ownerReferences", 0, "uid") == "uid-tj"
    assert dig(jobset, "spec", "replicatedJobs", 0, "template", "spec", "parallelism") == 2
    assert result.status is None
    assert result.events == ()


def test_a_snapshot_wins_over_the_live_runtime() -> None:
    trainjob = make_trainjob()
    snapshot = snapshot_of(trainjob)
    edited = make_runtime(make_job(image="edited:2"))
    result = plan(trainjob, snapshot=snapshot, runtime=edited)
    assert [action.kind for action in result.actions if isinstance(action, Apply)] == [JOBSET]
    assert "edited:2" not in str(result.actions)


def test_a_running_jobset_is_never_applied_again() -> None:
    trainjob = make_trainjob()
    result = plan(trainjob, snapshot=snapshot_of(trainjob), jobset=make_jobset(trainjob))
    assert result.actions == ()


def test_what_a_running_jobset_was_made_of_is_not_looked_at() -> None:
    trainjob = make_trainjob()
    metadata_only = {"metadata": snapshot_of(trainjob)["metadata"]}
    result = plan(trainjob, snapshot=metadata_only, jobset=make_jobset(trainjob))
    assert (result.actions, result.error) == ((), "")


@pytest.mark.parametrize(
    ("trainjob", "jobset", "expected"),
    [
        pytest.param(make_trainjob(), None, True, id="no JobSet yet"),
        pytest.param(make_trainjob(), {"suspend": False}, False, id="running"),
        pytest.param(make_trainjob(suspend=True), {"suspend": True}, True, id="suspended"),
        pytest.param(
            make_trainjob(),
            {"status": {"conditions": [make_condition("Completed")]}},
            True,
            id="just ended: the runtime may say how long it stays",
        ),
        pytest.param(
            make_trainjob(status={"conditions": [make_condition("Complete")]}),
            {},
            True,
            id="finished",
        ),
        pytest.param(
            make_trainjob(managedBy="kueue.x-k8s.io/multikueue"), None, False, id="not ours"
        ),
    ],
)
def test_the_snapshot_is_read_only_when_something_hangs_on_it(
    trainjob: Object, jobset: Any, expected: bool
) -> None:
    live = None if jobset is None else make_jobset(trainjob, **jobset)
    assert reads_snapshot(trainjob, live) is expected


def test_resume_applies_with_the_uid_of_the_jobset_and_turns_the_condition() -> None:
    suspended = {"conditions": [make_condition("Suspended")]}
    trainjob = make_trainjob(status=suspended)
    jobset = make_jobset(trainjob, suspend=True)
    result = plan(trainjob, snapshot=snapshot_of(trainjob), jobset=jobset)
    assert result.actions[0].uid == "uid-jobset"  # type: ignore[union-attr]  # it is an Apply
    assert applied_jobset(result)["spec"]["suspend"] is False
    assert conditions_after(trainjob, result) == [
        {
            "type": "Suspended",
            "status": "False",
            "reason": "Resumed",
            "message": "TrainJob is resumed",
            "lastTransitionTime": NOW_TEXT,
        }
    ]


def test_an_unchanged_suspended_jobset_is_not_sent_again() -> None:
    trainjob = make_trainjob(suspend=True, status={"conditions": [make_condition("Suspended")]})
    live, snapshot = make_jobset(trainjob, suspend=True), snapshot_of(trainjob)
    first = plan(trainjob, snapshot=snapshot, jobset=live)
    remembered = {key_of(live): record_apply(applied_jobset(first), live)}
    assert plan(trainjob, snapshot=snapshot, jobset=live, applied=remembered).actions == ()
    edited = live | {"metadata": live["metadata"] | {"labels": {"foreign": "edit"}}}
    again = plan(trainjob, snapshot=snapshot, jobset=edited, applied=remembered)
    assert len(again.actions) == 1
    patched = make_trainjob(suspend=True, trainer={"image": "other:2"})
    assert len(plan(patched, snapshot=snapshot, jobset=live, applied=remembered).actions) == 1


def test_the_last_label_of_a_pod_goes_by_leaving_the_map_out() -> None:
    trainjob = make_trainjob(
        suspend=True,
        runtimePatches=[
            {
                "manager": "kueue.x-k8s.io/manager",
                "trainingRuntimeSpec": {
                    "template": {
                        "metadata": {"labels": {}},
                        "spec": {
                            "replicatedJobs": [
                                {
                                    "name": "node",
                                    "template": {
                                        "spec": {
                                            "template": {
                                                "metadata": {"labels": {}},
                                                "spec": {"nodeSelector": {}},
                                            }
                                        }
                                    },
                                }
                            ]
                        },
                    }
                },
            }
        ],
    )
    jobset = applied_jobset(plan(trainjob, runtime=make_runtime()))
    pod = dig(jobset, "spec", "replicatedJobs", 0, "template", "spec", "template")
    assert "metadata" not in pod
    assert "nodeSelector" not in pod["spec"]
    assert "labels" not in jobset["metadata"]


@pytest.mark.parametrize(
    ("observed", "code", "text"),
    [
        pytest.param(
            {}, "RuntimeNotFound", 'ClusterTrainingRuntime "rt" not found', id="no runtime"
        ),
        pytest.param(
            {"snapshot": {"metadata": {"name": "tj-runtime-snapshot"}, "data": {"mine": "x"}}},
            "SnapshotInvalid",
            "is not owned by TrainJob ml/tj",
            id="a foreign snapshot",
        ),
        pytest.param(
            {"jobset": make_jobset(make_trainjob(), owned=False), "runtime": make_runtime()},
            "JobSetForeign",
            "JobSet ml/tj has no owner",
            id="a foreign jobset",
        ),
        pytest.param(
            {"runtime": make_runtime(ml_policy={"mpi": {}})},
            "PolicyNotSupported",
            "mlPolicy.mpi",
            id="a policy without a plugin",
        ),
    ],
)
def test_what_blocks_a_trainjob_is_said_in_a_condition_and_an_event(
    observed: Any, code: str, text: str
) -> None:
    trainjob = make_trainjob()
    result = plan(trainjob, **observed)
    assert result.actions == ()
    [condition] = conditions_after(trainjob, result)
    assert condition["type"] == f"trainwright.dev/{code}"
    assert text in condition["message"]
    [event] = result.events
    assert event.reason == "TrainJobResourcesCreationFailed"
    assert text in event.note
    assert result.error


def test_a_jobset_left_by_a_deleted_trainjob_of_the_name_is_waited_for_in_silence() -> None:
    earlier = make_trainjob()
    earlier["metadata"]["uid"] = "uid-earlier"
    result = plan(make_trainjob(), jobset=make_jobset(earlier), runtime=make_runtime())
    assert result == Plan(requeue_after_s=1.0)


def test_a_refusal_of_the_server_is_a_condition_until_a_pass_succeeds() -> None:
    trainjob = make_trainjob()
    planned = plan(trainjob, runtime=make_runtime())
    refused = plan_refusal(trainjob, planned, "exceeded quota: none", NOW)
    assert refused.status is not None
    [condition] = conditions_after(trainjob, refused)
    assert condition["type"] == "trainwright.dev/ObjectsRefused"
    assert condition["message"] == "exceeded quota: none"

    blocked = trainjob | {"status": {"conditions": [condition]}}
    later = NOW + timedelta(minutes=1)
    planned = plan_trainjob(
        Observed(trainjob=blocked, runtime=make_runtime()), DEFAULT_SETTINGS, later
    )
    assert plan_refusal(blocked, planned, "exceeded quota: none", later).status is None
    assert planned.status is not None
    assert planned.status.patch == {"status": {"conditions": []}}


DONE = {
    "conditions": [
        make_condition("Completed", reason="AllJobsCompleted", lastTransitionTime=NOW_TEXT)
    ],
    "replicatedJobsStatus": [
        {"name": "node", "ready": 0, "succeeded": 1, "failed": 0, "active": 0, "suspended": 0}
    ],
}


def test_a_completed_jobset_completes_the_trainjob() -> None:
    trainjob = make_trainjob()
    jobset = make_jobset(trainjob, status=DONE)
    result = plan(trainjob, jobset=jobset, snapshot=snapshot_of(trainjob))
    assert result.status is not None
    status = result.status.patch["status"]
    assert status["conditions"] == [
        make_condition(
            "Complete", reason="AllJobsCompleted", message="", lastTransitionTime=NOW_TEXT
        )
    ]
    assert status["jobsStatus"] == DONE["replicatedJobsStatus"]
    assert result.actions == ()


def test_a_finished_trainjob_stays_as_it_ended() -> None:
    failed = {"conditions": [make_condition("Failed", reason="FailedJobs")]}
    trainjob = make_trainjob(status=failed)
    assert plan(trainjob, runtime=make_runtime()) == Plan()
    completed = make_jobset(trainjob, status={"conditions": [make_condition("Completed")]})
    assert plan(trainjob, jobset=completed) == Plan()


def test_a_passed_deadline_fails_the_trainjob_and_deletes_its_jobset() -> None:
    trainjob = make_trainjob(activeDeadlineSeconds=60)
    jobset = make_jobset(trainjob)
    result = plan(trainjob, jobset=jobset, runtime=make_runtime())
    expected = Delete(kind=JOBSET, namespace="ml", name="tj", uid="uid-jobset")
    assert result.actions == (expected,)
    [condition] = conditions_after(trainjob, result)
    assert (condition["type"], condition["reason"]) == ("Failed", "DeadlineExceeded")
    after = trainjob | {"status": {"conditions": [condition]}}
    assert plan(after, jobset=jobset).actions == (expected,)
    assert plan(after).actions == ()


def test_a_deadline_counts_from_the_last_resume() -> None:
    resumed = make_condition("Suspended", "False", lastTransitionTime="2026-03-04T05:06:00Z")
    trainjob = make_trainjob(activeDeadlineSeconds=60, status={"conditions": [resumed]})
    result = plan(trainjob, jobset=make_jobset(trainjob), snapshot=snapshot_of(trainjob))
    assert result.requeue_after_s == 53.0


def test_a_suspended_trainjob_has_no_deadline() -> None:
    trainjob = make_trainjob(activeDeadlineSeconds=60, suspend=True)
    assert plan(trainjob, runtime=make_runtime()).requeue_after_s is None


@pytest.mark.parametrize(
    ("on_job", "on_runtime", "requeue_s"),
    [("400", None, 33.0), (None, "400", 33.0), ("400", "10", 33.0), (None, None, None)],
)
def test_time_to_live_counts_from_the_end(
    on_job: str | None, on_runtime: str | None, requeue_s: float | None
) -> None:
    def annotated(obj: Object, ttl: str | None) -> Object:
        annotations = {"trainwright.dev/ttl-seconds-after-finished": ttl} if ttl else {}
        return obj | {"metadata": obj["metadata"] | {"annotations": annotations}}

    complete = {"conditions": [make_condition("Complete")]}
    trainjob = annotated(make_trainjob(status=complete), on_job)
    snapshot = snapshot_of(make_trainjob(), annotated(make_runtime(), on_runtime))
    assert plan(trainjob, snapshot=snapshot).requeue_after_s == requeue_s
    later = NOW + timedelta(seconds=60)
    result = plan_trainjob(Observed(trainjob=trainjob, snapshot=snapshot), DEFAULT_SETTINGS, later)
    gone = Delete(kind=TRAINJOB, namespace="ml", name="tj", uid="uid-tj", resource_version="7")
    assert result.actions == ((gone,) if requeue_s else ())


@pytest.mark.parametrize(
    "trainjob",
    [
        pytest.param(make_trainjob(managedBy="kueue.x-k8s.io/multikueue"), id="managed by another"),
        pytest.param(
            make_trainjob() | {"metadata": {"name": "tj", "deletionTimestamp": NOW_TEXT}},
            id="being deleted",
        ),
    ],
)
def test_a_trainjob_that_is_not_ours_to_run_is_left_alone(trainjob: Object) -> None:
    assert plan(trainjob, runtime=make_runtime()) == Plan()


def test_an_unknown_runtime_kind_fails_the_trainjob() -> None:
    trainjob = make_trainjob(runtimeRef={"kind": "Recipe", "name": "x"})
    result = plan(trainjob)
    condition = find_condition(
        {"status": {"conditions": conditions_after(trainjob, result)}}, "Failed"
    )
    assert condition is not None
    assert condition["reason"] == "TrainingRuntimeNotSupported"
    assert condition["message"] == "unsupported runtime: Recipe.trainer.kubeflow.org"


def test_rendezvous_without_a_trainer_can_be_switched_off() -> None:
    settings = TrainJobSettings(inject_without_trainer=False)
    observed = Observed(trainjob=make_trainjob(), runtime=make_runtime())
    assert "PET_NNODES" not in str(plan_trainjob(observed, settings, NOW))
    assert "PET_NNODES" in str(plan_trainjob(observed, DEFAULT_SETTINGS, NOW))


def test_planning_does_not_edit_what_was_observed() -> None:
    trainjob, runtime = make_trainjob(trainer={"env": [{"name": "A"}]}), make_runtime()
    before = str((trainjob, runtime))
    plan(trainjob, runtime=runtime)
    assert str((trainjob, runtime)) == before


@pytest.mark.parametrize("text", ["1e3", "yes", "2026-01-02", "0x10", "1:30", "null", "~", "a: b"])
def test_a_snapshot_gives_back_texts_that_look_like_something_else(text: str) -> None:
    shared = {"value": text}
    runtime = make_runtime()
    runtime["metadata"]["annotations"] = {"one": text}
    runtime["spec"]["template"]["metadata"] = {"labels": shared, "annotations": shared}
    trainjob = make_trainjob()
    snapshot = snapshot_of(trainjob, runtime)
    assert "&id" not in snapshot["data"]["runtime"]
    assert parse_snapshot(snapshot, parse_trainjob(trainjob)).obj == runtime
