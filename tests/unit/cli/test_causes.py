"""What is said of a job whose Pods are refused, are gone, or started in the wrong folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trainwright.cli.causes import describe_causes
from trainwright.cli.jobs import JobView, find_refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.base.objects import Object

EARLY, MADE, LATE = (f"2026-03-04T05:06:0{second}Z" for second in (7, 8, 9))
JOBSET: dict[str, Any] = {
    "metadata": {"name": "tj", "namespace": "default", "uid": "set"},
    "spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"parallelism": 3}}}]},
}
JOB: dict[str, Any] = {
    "kind": "Job",
    "metadata": {"name": "tj-node-0", "uid": "job", "ownerReferences": [{"uid": "set"}]},
}


def make_view(state: str = "", pods: Sequence[Object] = ()) -> JobView:
    conditions = [{"type": state, "status": "True", "reason": "Why", "message": "it has ended"}]
    trainjob = {
        "metadata": {"name": "tj", "namespace": "default", "uid": "tj", "creationTimestamp": EARLY},
        "status": {"conditions": conditions if state else []},
    }
    return JobView(trainjob, JOBSET, pods)


def make_pod(phase: str = "Running", **ended: Any) -> Object:
    metadata = {"name": "tj-node-0-0-abcde", "uid": "pod", "creationTimestamp": MADE}
    rows = [{"state": {"terminated": ended}}] if ended else []
    return {"metadata": metadata, "status": {"phase": phase, "containerStatuses": rows}}


def make_event(reason: str, at: str = LATE, *, kind: str = "Pod", uid: str = "gone") -> Object:
    names = {"Pod": "tj-node-0-0-abcde", "Job": "tj-node-0"}
    regarding = {"kind": kind, "name": names[kind], "uid": uid}
    return {"reason": reason, "note": f"note of {reason}", "eventTime": at, "regarding": regarding}


def test_refusal_of_a_part_of_the_pods_is_the_reason_of_a_running_job() -> None:
    view = make_view(pods=[make_pod()])
    assert view.lacks_pods
    refusals = [make_event("FailedCreate", at, kind="Job", uid="job") for at in (EARLY, LATE)]
    found = find_refusal(view, [JOB], refusals)
    assert found is refusals[1]
    shown = JobView(view.trainjob, view.jobset, view.pods, found)
    assert shown.state.name == "Running"
    assert shown.why == "FailedCreate: note of FailedCreate"


@pytest.mark.parametrize(
    ("pods", "event"),
    [
        # What was refused before the newest Pod has been made since.
        ([make_pod()], make_event("FailedCreate", EARLY, kind="Job", uid="job")),
        ([make_pod()], make_event("Other", kind="Job", uid="job")),
        ([make_pod()], make_event("FailedCreate", kind="Job", uid="of-another")),
    ],
)
def test_what_is_no_refusal_of_missing_pods(pods: Sequence[Object], event: Object) -> None:
    assert find_refusal(make_view(pods=pods), [JOB], [event]) is None


@pytest.mark.parametrize(
    ("view", "lacks"),
    [
        (make_view(pods=[make_pod()] * 3), False),
        (make_view(pods=[make_pod(), make_pod(), make_pod("Failed")]), True),
        (make_view("Complete"), False),
        (make_view("Failed"), False),
        (make_view(), True),
    ],
)
def test_only_a_job_that_goes_on_lacks_pods(view: JobView, lacks: bool) -> None:
    assert view.lacks_pods is lacks


FOLDER, EXITED = make_event("WorkingFolderLost", EARLY), make_event("ContainerExited", MADE)
LIMIT = make_event("BackoffLimitExceeded", kind="Job", uid="job")


@pytest.mark.parametrize(
    ("view", "warnings", "wanted"),
    [
        # The Pod is gone: what was said of it counts, before what is said of its Job.
        (make_view("Failed"), [EXITED, make_event("BackOff"), LIMIT], ["note of ContainerExited"]),
        (make_view("Failed"), [LIMIT], ["note of BackoffLimitExceeded"]),
        (make_view("Failed"), [make_event("Exited", "2026-03-04T05:06:06Z")], []),
        (
            make_view("Failed", [make_pod("Failed", exitCode=3, message="no such file")]),
            [EXITED, LIMIT],
            ["exited with code 3 (no such file)"],
        ),
        (
            make_view("Failed", [make_pod("Failed", exitCode=3)]),
            [FOLDER],
            ["note of WorkingFolderLost", "exited with code 3"],
        ),
        (make_view(pods=[make_pod()]), [FOLDER, LIMIT], ["note of WorkingFolderLost"]),
    ],
)
def test_causes(view: JobView, warnings: Sequence[Object], wanted: Sequence[str]) -> None:
    said = describe_causes(view, [JOB], warnings)
    assert len(said) == len(wanted)
    assert all(part in sentence for part, sentence in zip(wanted, said, strict=True))
