"""A job keeps the runtime it was born with, and nothing that held runtimes or namespaces sticks.

The symptoms: an edit of a shared runtime leaks into jobs that exist already; finalizers of an
operator that is gone keep runtimes, and with them their namespaces, for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from tests.support.planes import TestPlane, make_runtime, make_trainjob, wait_until

if TYPE_CHECKING:
    from typing import Any

IN_USE = "trainer.kubeflow.org/resource-in-use"


def test_a_suspended_job_keeps_the_runtime_that_it_was_made_from(plane: TestPlane) -> None:
    runtime = make_runtime("shared")
    runtime["spec"]["mlPolicy"]["numNodes"] = 2
    containers = node_of(runtime)["containers"]
    containers[0] |= {"image": "before:1", "command": ["sleep", "600"]}
    job = make_trainjob("keeper", [], runtime="shared", suspend=True)
    del job["spec"]["trainer"]
    plane.apply(runtime, job)
    wait_until(
        lambda: plane.get("configmap", "keeper-runtime-snapshot"), "the runtime has been noted"
    )
    containers[0]["image"] = "after:2"
    runtime["spec"]["mlPolicy"]["numNodes"] = 3
    plane.apply(runtime)
    plane.cli("resume", "keeper")
    wait_until(
        lambda: [pod["status"]["phase"] for pod in plane.pods("keeper")] == ["Running"] * 2,
        "two pods run",
    )
    images = [pod["spec"]["containers"][0]["image"] for pod in plane.pods("keeper")]
    assert images == ["before:1"] * 2
    # A job that is made now gets the runtime as it is now.
    newer = make_trainjob("newer", [], runtime="shared")
    del newer["spec"]["trainer"]
    plane.apply(newer)
    wait_until(lambda: len(plane.pods("newer")) == 3, "three pods are there")
    assert plane.pods("newer")[0]["spec"]["containers"][0]["image"] == "after:2"
    plane.cli("rm", "keeper", "newer")


def node_of(runtime: dict[str, Any]) -> dict[str, Any]:
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]
    spec: dict[str, Any] = job["template"]["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize("kind", ["ClusterTrainingRuntime", "TrainingRuntime"])
def test_the_finalizer_of_older_trainers_is_taken_off(plane: TestPlane, kind: str) -> None:
    runtime = make_runtime("held") | {"kind": kind}
    runtime["metadata"]["finalizers"] = [IN_USE, "example.com/mine"]
    plane.apply(runtime)

    def finalizers() -> list[str]:
        found: list[str] = plane.get(kind, "held")["metadata"].get("finalizers", [])
        return found

    wait_until(lambda: IN_USE not in finalizers(), "the finalizer is gone")
    assert finalizers() == ["example.com/mine"]
    runtime["metadata"]["finalizers"] = [IN_USE]
    plane.apply(runtime)
    plane.kubectl("delete", kind, "held", "--timeout=60s")


def test_a_namespace_goes_while_its_jobs_run(plane: TestPlane) -> None:
    plane.kubectl("create", "namespace", "busy")
    held = make_runtime("held") | {"kind": "TrainingRuntime"}
    held["metadata"] |= {"finalizers": [IN_USE]}
    jobs = [make_trainjob(f"busy-{number}", ["sleep", "600"]) for number in range(3)]
    plane.kubectl("apply", "-n", "busy", "-f", "-", stdin=yaml.safe_dump_all([held, *jobs]))

    def phases() -> list[str]:
        return [pod["status"].get("phase") for pod in plane.get("pods", "", "-n", "busy")["items"]]

    wait_until(lambda: phases() == ["Running"] * 3, "the three jobs run")
    plane.kubectl("delete", "namespace", "busy", "--timeout=60s")
    assert plane.get("namespace", "busy") is None
    wait_until(lambda: plane.pod_processes() == [], "no process is left")
