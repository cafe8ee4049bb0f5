"""How jobs live and end: success, failure, restarts, deadline, suspension, ttl, deletion."""

from __future__ import annotations

from typing import Any

from tests.support.planes import TestPlane, make_runtime, make_trainjob, wait_until


def is_gone(plane: TestPlane, job: str) -> bool:
    """Whether nothing of a job is left: no object, no process, no folder."""
    owned = ("trainjobs", "jobsets", "jobs", "pods", "services", "configmaps", "secrets")
    lists = [plane.get(kind)["items"] for kind in owned]
    names = [item["metadata"]["name"] for items in lists for item in items]
    return not any(name == job or name.startswith(f"{job}-") for name in names)


def remove_and_check(plane: TestPlane, job: str) -> None:
    uids = [pod["metadata"]["uid"] for pod in plane.pods(job)]
    plane.cli("rm", job)
    wait_until(lambda: is_gone(plane, job), f"nothing of {job} is left")
    wait_until(
        lambda: not any((plane.home.pods / uid).exists() for uid in uids),
        f"no folder of {job} is left",
    )


def running_pods(plane: TestPlane, job: str) -> list[dict[str, Any]]:
    return [
        pod
        for pod in plane.pods(job)
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
    ]


def test_a_job_completes_and_tells_each_rank_who_it_is(plane: TestPlane) -> None:
    plane.apply(make_trainjob("ranks", ["sh", "-c", "echo I am $JOB_COMPLETION_INDEX"], nodes=3))
    assert "is Complete" in plane.cli("wait", "ranks")
    log = plane.cli("logs", "ranks")
    assert log.splitlines() == [f"node/{rank} | I am {rank}" for rank in range(3)]
    status = plane.get("trainjob", "ranks")["status"]
    assert [condition["type"] for condition in status["conditions"]] == ["Complete"]
    assert status["conditions"][0]["reason"] == "AllJobsCompleted"
    assert status["jobsStatus"] == [
        {"name": "node", "ready": 0, "succeeded": 1, "failed": 0, "active": 0, "suspended": 0}
    ]
    remove_and_check(plane, "ranks")


def test_a_failing_rank_fails_the_job_and_says_why(plane: TestPlane) -> None:
    script = 'test "$JOB_COMPLETION_INDEX" = 0 && exec sleep 600; echo oh no; exit 3'
    plane.apply(
        make_runtime("fragile"),
        make_trainjob("broken", ["sh", "-c", script], runtime="fragile", nodes=2),
    )
    assert "Failed" in plane.cli("wait", "broken", code=1)
    assert plane.condition("broken", "Failed") is not None
    assert "exited with code 3" in plane.cli("get", "broken")
    remove_and_check(plane, "broken")
    assert plane.pod_processes() == []


def test_a_failing_rank_is_started_again_as_often_as_the_failure_policy_says(
    plane: TestPlane,
) -> None:
    marks = plane.scratch / "attempts"
    plane.apply(
        make_runtime("stubborn", failurePolicy={"maxRestarts": 2}),
        make_trainjob("again", ["sh", "-c", f"echo x >> {marks}; exit 3"], runtime="stubborn"),
    )
    assert plane.wait_condition("again", "Failed")["reason"] == "ReachedMaxRestarts"
    assert plane.get("jobset", "again")["status"]["restarts"] == 2
    assert marks.read_text() == "x\nx\nx\n"
    remove_and_check(plane, "again")


def test_a_deadline_ends_the_job_and_its_processes(plane: TestPlane) -> None:
    plane.apply(make_trainjob("late", ["sleep", "600"], activeDeadlineSeconds=2))
    assert plane.wait_condition("late", "Failed")["reason"] == "DeadlineExceeded"
    wait_until(lambda: plane.pods("late") == [], "its pods are gone")
    remove_and_check(plane, "late")
    assert plane.pod_processes() == []


def test_suspend_and_resume_five_times_in_a_row(plane: TestPlane) -> None:
    plane.apply(make_trainjob("yoyo", ["sleep", "600"], nodes=2))
    for _ in range(5):
        wait_until(lambda: len(running_pods(plane, "yoyo")) == 2, "both nodes run")
        plane.cli("stop", "yoyo")
        wait_until(lambda: plane.pods("yoyo") == [], "no pod is left")
        assert plane.wait_condition("yoyo", "Suspended")["reason"] == "Suspended"
        assert plane.pod_processes() == []
        plane.cli("resume", "yoyo")
    wait_until(lambda: len(running_pods(plane, "yoyo")) == 2, "both nodes run")
    conditions = plane.get("trainjob", "yoyo")["status"]["conditions"]
    assert [(c["type"], c["status"], c["reason"]) for c in conditions] == [
        ("Suspended", "False", "Resumed")
    ]
    remove_and_check(plane, "yoyo")


def test_a_job_with_a_time_to_live_goes_by_itself(plane: TestPlane) -> None:
    job = make_trainjob("brief", ["true"])
    job["metadata"]["annotations"] = {"trainwright.dev/ttl-seconds-after-finished": "1"}
    plane.apply(job)
    wait_until(lambda: is_gone(plane, "brief"), "the job and all it made are gone")


def test_a_running_job_is_deleted_with_its_whole_process_tree(plane: TestPlane) -> None:
    # A child in a session of its own, whose parent has gone: what killing a process group misses.
    orphan = "setsid sh -c 'sleep 600 & exec sleep 600' & wait"
    plane.apply(make_trainjob("tree", ["sh", "-c", orphan]))
    wait_until(lambda: len(plane.pod_processes()) >= 4, "the tree has grown")
    remove_and_check(plane, "tree")
    wait_until(lambda: plane.pod_processes() == [], "no process is left")


def test_jobs_that_are_submitted_at_once_all_complete(plane: TestPlane) -> None:
    names = [f"many-{number}" for number in range(10)]
    plane.apply(*(make_trainjob(name, ["sh", "-c", "echo done"], nodes=2) for name in names))
    for name in names:
        plane.wait_condition(name, "Complete")
    states = dict(line.split()[:2] for line in plane.cli("ls").splitlines()[1:])
    assert {states[name] for name in names} == {"Complete"}
    plane.cli("rm", *names)


def test_sixteen_ranks_meet(plane: TestPlane) -> None:
    folder = plane.scratch / "meeting"
    folder.mkdir()
    script = f"touch {folder}/$JOB_COMPLETION_INDEX; until [ $(ls {folder} | wc -l) = 16 ]; do sleep 0.1; done"
    plane.apply(make_trainjob("sixteen", ["sh", "-c", script], nodes=16))
    plane.wait_condition("sixteen", "Complete")
    plane.cli("rm", "sixteen")
