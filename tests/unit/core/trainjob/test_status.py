from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.core.trainjob.factories import (
    CREATED_TEXT,
    NOW,
    make_condition,
    make_jobset,
    make_trainjob,
)
from trainwright.core.trainjob.status import State, reduce_state, reduce_status

if TYPE_CHECKING:
    from trainwright.base.objects import Object

COUNTS = {"ready": 1, "succeeded": 0, "failed": 0, "active": 2, "suspended": 0}


def test_suspending_again_keeps_the_time_of_the_condition() -> None:
    suspended = make_condition("Suspended", message="TrainJob is suspended")
    trainjob = make_trainjob(suspend=True, status={"conditions": [suspended]})
    assert reduce_status(trainjob, None, NOW)["conditions"] == [suspended]


def test_a_resumed_job_that_completes_keeps_the_order_of_its_conditions() -> None:
    trainjob = make_trainjob(status={"conditions": [make_condition("Suspended", "False")]})
    jobset = make_jobset(trainjob, status={"conditions": [make_condition("Completed")]})
    types = [c["type"] for c in reduce_status(trainjob, jobset, NOW)["conditions"]]
    assert types == ["Suspended", "Complete"]


def test_conditions_of_the_jobset_that_do_not_end_it_are_ignored() -> None:
    trainjob = make_trainjob()
    conditions = [make_condition("Completed", "False"), make_condition("StartupPolicyCompleted")]
    jobset = make_jobset(trainjob, status={"conditions": conditions})
    assert reduce_status(trainjob, jobset, NOW) == {}


def test_jobs_are_copied_with_five_numbers_and_progress_is_kept() -> None:
    progress = {"progressPercentage": 5, "lastUpdatedTime": CREATED_TEXT}
    trainjob = make_trainjob(status={"trainerStatus": progress, "jobsStatus": []})
    seen = [{"name": "node", "ready": 1, "active": 2, "restarts": 9}]
    jobset = make_jobset(trainjob, status={"replicatedJobsStatus": seen})
    status = reduce_status(trainjob, jobset, NOW)
    assert status == {"trainerStatus": progress, "jobsStatus": [{"name": "node", **COUNTS}]}


def pod(phase: str, **status: object) -> Object:
    return {"metadata": {"name": "tj-node-0-0-x"}, "status": {"phase": phase, **status}}


UNSCHEDULABLE = pod(
    "Pending",
    conditions=[
        make_condition("PodScheduled", "False", reason="Unschedulable", message="no GPU is free")
    ],
)
PULLING = pod(
    "Pending",
    containerStatuses=[
        {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no me:1"}}}
    ],
)
READY = {"replicatedJobsStatus": [{"name": "node", "ready": 1}]}


@pytest.mark.parametrize(
    ("trainjob", "jobset_status", "pods", "name", "reason", "message"),
    [
        pytest.param(
            make_trainjob(), None, [], "Pending", "Creating", "does not exist", id="no jobset"
        ),
        pytest.param(make_trainjob(), {}, [], "Pending", "Starting", "not started", id="no pods"),
        pytest.param(
            make_trainjob(), {}, [UNSCHEDULABLE], "Pending", "Unschedulable", "no GPU", id="no room"
        ),
        pytest.param(
            make_trainjob(), {}, [PULLING], "Pending", "ImagePullBackOff", "no me:1", id="no image"
        ),
        pytest.param(make_trainjob(), {}, [PULLING, pod("Running")], "Running", "", "", id="a pod"),
        pytest.param(make_trainjob(), READY, [], "Running", "", "", id="ready, pods unknown"),
        pytest.param(
            make_trainjob(), {}, [pod("Succeeded")], "Running", "Ending", "have ended", id="ending"
        ),
        pytest.param(
            make_trainjob(),
            {},
            [pod("Succeeded"), UNSCHEDULABLE],
            "Pending",
            "Unschedulable",
            "no GPU",
            id="one ended, one waits",
        ),
        pytest.param(
            make_trainjob(suspend=True),
            READY,
            [pod("Running")],
            "Suspended",
            "Suspended",
            "",
            id="stop",
        ),
        pytest.param(
            make_trainjob(
                status={
                    "conditions": [
                        make_condition(
                            "trainwright.dev/ObjectsRefused",
                            reason="ObjectsRefused",
                            message="exceeded quota",
                        )
                    ]
                }
            ),
            None,
            [],
            "Pending",
            "ObjectsRefused",
            "exceeded quota",
            id="refused",
        ),
        pytest.param(
            make_trainjob(
                suspend=True,
                status={"conditions": [make_condition("Failed", reason="FailedJobs", message="m")]},
            ),
            None,
            [pod("Running")],
            "Failed",
            "FailedJobs",
            "m",
            id="failed",
        ),
    ],
)
def test_the_honest_state(
    trainjob: Object,
    jobset_status: Object | None,
    pods: list[Object],
    name: str,
    reason: str,
    message: str,
) -> None:
    jobset = None if jobset_status is None else make_jobset(trainjob, status=jobset_status)
    state = reduce_state(trainjob, jobset, pods)
    assert isinstance(state, State)
    assert (state.name, state.reason) == (name, reason)
    assert message in state.message
