"""What planes and commands leave behind, and what they must not: processes, files, other planes' jobs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.planes import TestPlane, make_plane, make_runtime, make_trainjob, wait_until
from trainwright.node.volumes import find_memory_folder
from trainwright.plane.process import find_plane

if TYPE_CHECKING:
    from collections.abc import Iterator

PLAIN = ("--runtime", "plain-distributed")


def test_a_run_without_a_plane_leaves_no_process_behind(tmp_path: Path) -> None:
    with make_plane(tmp_path, up=False) as plane:
        text = plane.cli("run", *PLAIN, "--", "sh", "-c", "echo worked")
        assert "node/0 | worked" in text
        assert plane.processes() == []


def test_ctrl_c_of_a_run_leaves_the_job_running(tmp_path: Path) -> None:
    with make_plane(tmp_path, up=False) as plane:
        script = "echo started; until [ -e go ]; do sleep 0.1; done; echo finished"
        run = plane.popen("run", *PLAIN, "--name", "kept", "--", "sh", "-c", script)
        assert run.stdout is not None
        seen = []
        for line in run.stdout:
            seen.append(line)
            if "| started" in line:
                break
        run.send_signal(signal.SIGINT)
        rest, _ = run.communicate(timeout=60)
        assert run.returncode == 130, "".join(seen) + rest
        assert "the job goes on" in rest
        assert "trainwright logs kept -f" in rest
        (plane.scratch / "go").touch()
        plane.wait_condition("kept", "Complete")
        assert "node/0 | finished" in plane.cli("logs", "kept")


def test_the_port_stays_so_that_copies_of_the_kubeconfig_do(tmp_path: Path) -> None:
    with make_plane(tmp_path) as plane:
        before = plane.record.server
        plane.cli("down")
        plane.up()
        assert plane.record.server == before
        plane.cli("down")
        port = int(before.rpartition(":")[2])
        with socket.create_server(("127.0.0.1", port)):
            plane.up()
            assert plane.record.server != before
            plane.cli("ls")


def test_two_planes_run_side_by_side(tmp_path: Path, plane: TestPlane) -> None:
    with make_plane(tmp_path) as other:
        assert plane.record.server != other.record.server
        for one in (plane, other):
            one.apply(make_trainjob("twin", ["sleep", "600"], nodes=2))
        for one in (plane, other):
            one.cli("wait", "twin", "--for", "running", "--timeout", "60")
        plane.cli("rm", "twin")
        wait_until(lambda: plane.pod_processes() == [], "no process of the first is left")
        assert other.get("trainjob", "twin") is not None
        assert len(other.pod_processes()) >= 2
        other.cli("down")
        assert other.processes() == []
        assert "no TrainJobs" in plane.cli("ls")


def test_nothing_is_left_outside_of_the_data_folder(tmp_path: Path) -> None:
    with make_plane(tmp_path, up=False) as plane:
        memory = find_memory_folder(plane.home.folder, os.getuid(), plane.environ)
        (memory / "of-a-pod-that-went-with-its-folder").mkdir(parents=True)
        plane.up()
        plane.kubectl("create", "secret", "generic", "token", "--from-literal=word=hidden")
        volume = {"name": "token", "secret": {"secretName": "token"}}
        container = {"name": "node", "volumeMounts": [{"name": "token", "mountPath": "/hidden"}]}
        job = make_trainjob("tidy", ["sh", "-c", "cat /hidden/word; exec sleep 600"])
        job["spec"]["runtimePatches"] = [
            build_patch({"volumes": [volume], "containers": [container]})
        ]
        plane.apply(job)
        wait_until(lambda: "hidden" in plane.cli("logs", "tidy", code=None), "the secret is read")
        assert list(memory.rglob("word")) != []
        assert list(plane.home.folder.rglob("word")) == []
        uid = plane.pods("tidy")[0]["metadata"]["uid"]
        plane.cli("rm", "tidy")
        wait_until(lambda: not (plane.home.pods / uid).exists(), "its folder is gone")
        wait_until(lambda: not (memory / uid).exists(), "its memory is free")
        assert not Path("/hidden").exists()
        plane.cli("down")
        assert not memory.exists()


def build_patch(pod_spec: object) -> dict[str, object]:
    replicated = {"name": "node", "template": {"spec": {"template": {"spec": pod_spec}}}}
    spec = {"template": {"spec": {"replicatedJobs": [replicated]}}}
    return {"manager": "acme.io/test", "trainingRuntimeSpec": spec}


def test_down_ends_the_processes_and_up_goes_on_with_the_jobs(tmp_path: Path) -> None:
    with make_plane(tmp_path) as plane:
        script = (
            f"echo x >> {plane.scratch}/starts; until [ -e {plane.scratch}/go ]; do sleep 0.1; done"
        )
        plane.apply(make_lenient_runtime())
        plane.apply(make_trainjob("patient", ["sh", "-c", script], runtime="lenient"))
        plane.apply(make_trainjob("done", ["true"]))
        plane.wait_condition("done", "Complete")
        wait_until((plane.scratch / "starts").exists, "the job runs")
        uid = plane.get("trainjob", "patient")["metadata"]["uid"]
        plane.cli("down")
        assert plane.processes() == []
        (plane.scratch / "go").touch()
        plane.up()
        plane.wait_condition("patient", "Complete")
        assert (plane.scratch / "starts").read_text() == "x\nx\n"
        assert plane.get("trainjob", "patient")["metadata"]["uid"] == uid
        assert plane.condition("done", "Complete") is not None


def make_lenient_runtime() -> dict[str, Any]:
    """A runtime whose job fails at its first error, but not when its node goes."""
    runtime = make_runtime("lenient")
    spec = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]
    condition = {"type": "DisruptionTarget", "status": "True"}
    spec["podFailurePolicy"] = {"rules": [{"action": "Ignore", "onPodConditions": [condition]}]}
    return runtime


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a disk of its own needs the right to mount")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_told_and_jobs_can_still_be_deleted(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk"), make_plane(tmp_path / "disk") as plane:
        plane.apply(make_trainjob("before", ["sleep", "600"]))
        plane.cli("wait", "before", "--for", "running", "--timeout", "60")
        fill_disk(plane.scratch / "filler")
        text = plane.cli("submit", *PLAIN, "--", "true", code=5)
        assert "is full" in text
        assert str(plane.home.folder) in text
        assert plane.cli("ls").split()[6:8] == ["before", "Running"]
        plane.cli("rm", "before")
        wait_until(lambda: plane.pod_processes() == [], "its processes are gone")
        assert plane.get("jobsets")["items"] == []
        (plane.scratch / "filler").unlink()
        plane.apply(make_trainjob("after", ["true"]))
        plane.wait_condition("after", "Complete")
        fill_disk(plane.scratch / "filler")
        plane.cli("down")
        assert find_plane(plane.home) is None


def fill_disk(file: Path) -> None:
    with file.open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(65536))
        except OSError:
            return
