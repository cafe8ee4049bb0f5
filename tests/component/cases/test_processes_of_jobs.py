"""A laptop's job gets its environment, volumes and limits like a cluster's, and leaves nothing running.

The symptoms: a local mode that accepts fields and drops them; processes that survive their parent.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.planes import TestPlane, make_plane, make_runtime, make_trainjob, wait_until

if TYPE_CHECKING:
    from typing import Any

# A child in the session of its parent, one in a session of its own, and one whose parent has gone.
# In a command of Kubernetes two dollars stand for one.
TREE = "echo $$$$ > {file}; sleep 600 & setsid sleep 600 & (setsid sleep 600 &); wait"
TREE_SIZE = 4


def node_spec(runtime: dict[str, Any]) -> dict[str, Any]:
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]
    spec: dict[str, Any] = job["template"]["spec"]["template"]["spec"]
    return spec


def test_environment_and_volumes_reach_the_process(plane: TestPlane) -> None:
    plane.kubectl("create", "configmap", "settings", "--from-literal=rate=0.1")
    plane.kubectl("create", "secret", "generic", "token", "--from-literal=word=open-sesame")
    runtime = make_runtime("furnished")
    spec = node_spec(runtime)
    spec["volumes"] = [
        {"name": "settings", "configMap": {"name": "settings"}},
        {"name": "scratch", "emptyDir": {}},
    ]
    container = spec["containers"][0]
    container["volumeMounts"] = [
        {"name": "settings", "mountPath": "/settings"},
        {"name": "scratch", "mountPath": "/scratch"},
    ]
    container["env"] = [{"name": "FROM_RUNTIME", "value": "r"}, {"name": "BOTH", "value": "r"}]
    script = "cp /settings/rate /scratch/rate; echo $FROM_RUNTIME $BOTH $WORD $(cat /scratch/rate)"
    job = make_trainjob("furnished", ["sh", "-c", script], runtime="furnished")
    secret = {"secretKeyRef": {"name": "token", "key": "word"}}
    job["spec"]["trainer"]["env"] = [
        {"name": "BOTH", "value": "j"},
        {"name": "WORD", "valueFrom": secret},
    ]
    plane.apply(runtime, job)
    plane.wait_condition("furnished", "Complete")
    assert plane.cli("logs", "furnished").split("|")[-1].strip() == "r j open-sesame 0.1"
    plane.cli("rm", "furnished")


def test_a_job_above_its_memory_limit_is_reported_as_out_of_memory(plane: TestPlane) -> None:
    hog = "import time; x = bytearray(b'x') * 400_000_000; time.sleep(600)"
    job = make_trainjob("hog", ["python", "-c", hog], runtime="fragile")
    job["spec"]["trainer"]["resourcesPerNode"] = {"limits": {"memory": "200M"}}
    plane.apply(make_runtime("fragile"), job)
    plane.wait_condition("hog", "Failed")
    page = plane.cli("get", "hog")
    assert "OOMKilled" in page or "out of memory" in page, page
    (pod,) = plane.pods("hog")
    (container,) = pod["status"]["containerStatuses"]
    assert container["state"]["terminated"]["reason"] == "OOMKilled"
    assert container["state"]["terminated"]["exitCode"] == 137
    plane.cli("rm", "hog")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_of_a_job_outlives_its_main_process(
    plane: TestPlane, number: signal.Signals
) -> None:
    name = f"tree-{number.name.lower()}"
    main = start_tree(plane, name, runtime="fragile")
    os.kill(main, number)
    assert_nothing_is_left(plane)
    plane.wait_condition(name, "Failed")
    plane.cli("rm", name)


def test_nothing_of_a_job_outlives_its_keeper(plane: TestPlane) -> None:
    main = start_tree(plane, "keeperless", runtime="fragile")
    stat = Path(f"/proc/{main}/stat").read_text(encoding="utf-8")
    keeper = int(stat.rpartition(")")[2].split()[1])
    os.kill(keeper, signal.SIGKILL)
    assert_nothing_is_left(plane)
    plane.wait_condition("keeperless", "Failed")
    plane.cli("rm", "keeperless")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_plane_that_is_told_to_end_ends_its_jobs(tmp_path: Path, number: signal.Signals) -> None:
    with make_plane(tmp_path) as plane:
        start_tree(plane, "tree", runtime="plain-distributed")
        os.kill(plane.record.pid, number)
        wait_until(lambda: plane.processes() == [], "the plane and its jobs have ended")


def start_tree(plane: TestPlane, name: str, *, runtime: str) -> int:
    """The main process of a job that has grown its tree of processes."""
    file = plane.scratch / name
    command = ["sh", "-c", TREE.format(file=file)]
    plane.apply(make_runtime("fragile"), make_trainjob(name, command, runtime=runtime))

    def has_grown() -> bool:
        return file.exists() and len(plane.pod_processes()) > TREE_SIZE

    wait_until(has_grown, "the tree has grown")
    return int(file.read_text())


def assert_nothing_is_left(plane: TestPlane) -> None:
    wait_until(lambda: plane.pod_processes() == [], "no process of the job is left")
