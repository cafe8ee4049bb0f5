"""One honest state at every moment: Suspended, Pending with a reason, Running, then how it ended."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tests.support.planes import TestPlane, make_runtime, make_trainjob, wait_until

if TYPE_CHECKING:
    import subprocess


class StateWatch:
    """`trainwright ls -w` in the background: the states of one job, each change once."""

    def __init__(self, plane: TestPlane, job: str) -> None:
        self._job = job
        self._process: subprocess.Popen[str] = plane.popen("ls", "--watch")
        self.states: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            words = line.split()
            if words[:1] == [self._job] and self.states[-1:] != [words[1]]:
                self.states.append(words[1])

    def wait(self, state: str) -> None:
        wait_until(
            lambda: self.states[-1:] == [state], f"{self._job} is {state}, not {self.states}"
        )

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


def kubectl_row(plane: TestPlane, job: str) -> dict[str, str]:
    """The row of `kubectl get -o wide`; cells are found by where their header stands."""
    header, row = plane.kubectl("get", "trainjob", job, "-o", "wide").splitlines()
    names = header.split()
    starts = [header.index(name) for name in names]
    ends = [*starts[1:], len(row) + len(header)]
    return {name: row[a:b].strip() for name, a, b in zip(names, starts, ends, strict=True)}


def test_a_job_is_suspended_then_pending_then_running_then_complete(plane: TestPlane) -> None:
    go = plane.scratch / "go"
    job = make_trainjob(
        "honest", ["sh", "-c", f"until [ -e {go} ]; do sleep 0.1; done"], suspend=True
    )
    # Its pod waits for this ConfigMap, so that Pending lasts as long as the test needs it.
    source = {"configMapKeyRef": {"name": "awaited", "key": "answer"}}
    job["spec"]["trainer"]["env"] = [{"name": "ANSWER", "valueFrom": source}]
    plane.apply(job)
    watch = StateWatch(plane, "honest")
    try:
        watch.wait("Suspended")
        assert kubectl_row(plane, "honest")["STATE"] == "Suspended"
        plane.cli("resume", "honest")
        watch.wait("Pending")
        wait_until(lambda: "awaited" in plane.cli("ls", "-o", "wide"), "the reason is named")
        row = kubectl_row(plane, "honest")
        assert (row["ACTIVE"], row["READY"]) == ("1", "0")
        plane.kubectl("create", "configmap", "awaited", "--from-literal=answer=42")
        watch.wait("Running")
        wait_until(lambda: kubectl_row(plane, "honest")["READY"] == "1", "its pod is ready")
        go.touch()
        watch.wait("Complete")
        assert watch.states == ["Suspended", "Pending", "Running", "Complete"]
    finally:
        watch.stop()
    row = kubectl_row(plane, "honest")
    assert (row["STATE"], row["ACTIVE"], row["SUCCEEDED"]) == ("Complete", "0", "1")


def test_each_return_to_a_state_is_shown(plane: TestPlane) -> None:
    plane.apply(make_trainjob("yoyo", ["sleep", "600"]))
    watch = StateWatch(plane, "yoyo")
    try:
        for _ in range(2):
            watch.wait("Running")
            plane.cli("stop", "yoyo")
            watch.wait("Suspended")
            plane.cli("resume", "yoyo")
        watch.wait("Running")
    finally:
        watch.stop()
    plane.cli("rm", "yoyo")


def test_a_job_that_fits_no_node_stays_pending_and_says_so(plane: TestPlane) -> None:
    pod = {"nodeSelector": {"example.com/accelerator": "h900"}}
    patched = {"name": "node", "template": {"spec": {"template": {"spec": pod}}}}
    patch = {
        "manager": "acme.io/test",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [patched]}}},
    }
    plane.apply(make_trainjob("misfit", ["true"], runtimePatches=[patch]))

    wait_until(
        lambda: "Pending (Unschedulable" in plane.cli("get", "misfit"), "the reason is shown"
    )
    # Another job comes and goes meanwhile: the controllers have had their chance.
    plane.apply(make_trainjob("passing", ["true"]))
    plane.wait_condition("passing", "Complete")
    page = plane.cli("get", "misfit")
    assert "Pending (Unschedulable" in page
    assert "selector" in page
    assert plane.get("trainjob", "misfit").get("status", {}).get("conditions", []) == []
    plane.cli("rm", "misfit", "passing")


def test_a_job_whose_last_pod_is_deleted_still_tells_why_it_failed(plane: TestPlane) -> None:
    """Kubernetes deletes the Pod of a Job without retries left when its containers may restart."""
    runtime = make_runtime("no-retry")
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["template"]["spec"]["restartPolicy"] = "OnFailure"
    plane.apply(runtime, make_trainjob("causeless", ["sh", "-c", "exit 7"], runtime="no-retry"))
    plane.wait_condition("causeless", "Failed")
    wait_until(lambda: plane.pods("causeless") == [], "its Pods are gone")
    for command in ("get", "logs"):
        assert "exited with code 7" in plane.cli(command, "causeless")


def test_a_finished_job_is_neither_suspended_nor_resumed(plane: TestPlane) -> None:
    plane.apply(make_trainjob("finished", ["true"]))
    plane.wait_condition("finished", "Complete")
    for verb in ("stop", "resume"):
        assert "finished is Complete and cannot be" in plane.cli(verb, "finished", code=5)
    assert not plane.get("trainjob", "finished")["spec"].get("suspend")
