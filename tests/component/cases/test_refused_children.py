"""What the server refuses for a job is said in the job's own conditions, and goes with its cause.

The symptom: a job that stays blank for ever, while only a short-lived event knows why.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.support.planes import TestPlane, make_runtime, make_trainjob, wait_until
from trainwright.api.kinds import RESOURCE_QUOTA
from trainwright.machinery.clock import SystemClock
from trainwright.machinery.workqueue import BACKOFF_CAP_S, Key, WorkQueue
from trainwright.plane.room import retry_when_there_is_room
from trainwright.server.inprocess import InProcessApi, StoreLister

if TYPE_CHECKING:
    from typing import Any

    from trainwright.server.registry import Registry

JOBSETS = "count/jobsets.jobset.x-k8s.io"


def make_quota(name: str, **hard: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"hard": hard},
    }


def conditions(plane: TestPlane, job: str) -> list[str]:
    status = plane.get("trainjob", job).get("status", {})
    return [condition["type"] for condition in status.get("conditions", [])]


def test_a_name_that_jobset_refuses_is_named_in_the_conditions(plane: TestPlane) -> None:
    runtime = make_runtime("bad-name")
    runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["name"] = "Node_A"
    plane.apply(runtime, make_trainjob("bad-name", ["true"], runtime="bad-name"))
    condition = plane.wait_condition("bad-name", "trainwright.dev/ObjectsRefused")
    assert condition["reason"] == "ObjectsRefused"
    assert "spec.replicatedJobs[0].name" in condition["message"]
    assert "Node_A" in condition["message"]
    assert "Node_A" in plane.cli("get", "bad-name")
    plane.cli("rm", "bad-name")


def test_a_quota_is_named_and_the_job_runs_once_it_is_lifted(plane: TestPlane) -> None:
    plane.apply(make_quota("none", **{JOBSETS: 0}))
    plane.apply(make_trainjob("refused", ["true"]))
    message = plane.wait_condition("refused", "trainwright.dev/ObjectsRefused")["message"]
    assert "exceeded quota: none" in message
    assert f"limited: {JOBSETS}=0" in message
    assert "exceeded quota: none" in plane.cli("ls", "-o", "wide")
    plane.kubectl("patch", "resourcequota", "none", "--type=merge", "-p", f'{{"spec":{{"hard":{{"{JOBSETS}":5}}}}}}')  # fmt: skip
    plane.wait_condition("refused", "Complete")
    assert conditions(plane, "refused") == ["Complete"]
    plane.kubectl("delete", "resourcequota", "none")
    plane.cli("rm", "refused")


def test_a_job_that_found_no_room_runs_when_another_one_goes(plane: TestPlane) -> None:
    plane.apply(make_trainjob("first", ["sleep", "600"]))
    wait_until(lambda: plane.get("jobset", "first"), "the first job has its JobSet")
    plane.apply(make_quota("one", **{JOBSETS: 1}))
    plane.apply(make_trainjob("second", ["true"]))
    plane.wait_condition("second", "trainwright.dev/ObjectsRefused")
    plane.cli("rm", "first")
    plane.wait_condition("second", "Complete")
    assert conditions(plane, "second") == ["Complete"]
    plane.kubectl("delete", "resourcequota", "one")
    plane.cli("rm", "second")


def test_refused_pods_are_said_on_the_page_of_the_job(plane: TestPlane) -> None:
    plane.apply(make_quota("no-pods", pods=0))
    plane.apply(make_trainjob("podless", ["true"]))
    wait_until(
        lambda: "exceeded quota: no-pods" in plane.cli("get", "podless"), "the page names the quota"
    )
    plane.kubectl("delete", "resourcequota", "no-pods")
    plane.wait_condition("podless", "Complete")
    assert conditions(plane, "podless") == ["Complete"]
    plane.cli("rm", "podless")


def test_refusal_of_a_part_of_the_pods_is_said_beside_running(plane: TestPlane) -> None:
    plane.apply(make_quota("one-pod", pods=1))
    plane.apply(make_trainjob("partial", ["sleep", "600"], nodes=3))
    plane.cli("wait", "partial", "--for", "running", "--timeout", "60")
    for command in (("get", "partial"), ("ls", "-o", "wide")):

        def says_why(words: tuple[str, ...] = command) -> str:
            text = plane.cli(*words)
            return text if "exceeded quota: one-pod" in text else ""

        page = wait_until(says_why, "the quota is named")
        assert "1/3" in page
        assert "Running" in page
    plane.kubectl("delete", "resourcequota", "one-pod")
    wait_until(lambda: "3/3" in plane.cli("get", "partial"), "all nodes run")
    assert "quota" not in plane.cli("get", "partial")
    plane.cli("rm", "partial")


def test_a_job_over_quota_is_refused_and_not_invalid(plane: TestPlane) -> None:
    plane.apply(make_quota("no-jobs", **{"count/trainjobs.trainer.kubeflow.org": 0}))
    text = plane.cli("submit", "--runtime", "plain-distributed", "--", "true", code=5)
    assert "exceeded quota: no-jobs" in text
    plane.kubectl("delete", "resourcequota", "no-jobs")


async def test_a_lifted_quota_cuts_the_longest_back_off_short(registry: Registry) -> None:
    """Left to its back-off, a job that was refused for an hour would wait five minutes more."""
    api, queue = InProcessApi(registry), WorkQueue(SystemClock())
    quota = make_quota("none", **{JOBSETS: 0})
    await api.create(RESOURCE_QUOTA, quota, field_manager="test")
    retry_when_there_is_room(StoreLister(registry), [queue])
    for key in (Key("default", "refused"), Key("elsewhere", "refused")):
        while queue.add_failed(key) < BACKOFF_CAP_S:
            pass
        await asyncio.sleep(0)
    assert len(queue) == 0
    quota["spec"]["hard"][JOBSETS] = 1
    await api.replace(RESOURCE_QUOTA, quota, field_manager="test")
    async with asyncio.timeout(60):
        assert await queue.take() == Key("default", "refused")
    assert len(queue) == 0
    queue.close()
