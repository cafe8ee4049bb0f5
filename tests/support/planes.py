"""Real planes for tests: each in a folder of its own, driven through the command line and kubectl."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from trainwright.machinery.kubeconfig import read_kubeconfig
from trainwright.plane.home import Home
from trainwright.plane.process import PlaneRecord, find_plane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trainwright.machinery.connection import Connection

TRAINWRIGHT = Path(sys.executable).with_name("trainwright")
KUBECTL = "/usr/bin/kubectl"
LIMIT_S = 60.0
COMMAND_LIMIT_S = 90.0


def wait_until(is_so: Callable[[], Any], what: str, limit_s: float = LIMIT_S) -> Any:
    """The first true value of `is_so`, within a generous time."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if value := is_so():
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what}: not so after {limit_s:.0f} s")


@dataclass(frozen=True)
class TestPlane:
    """One plane's folder, and how to talk to it."""

    __test__ = False

    home: Home
    scratch: Path
    """For what a test writes: nobody else's."""

    @property
    def environ(self) -> dict[str, str]:
        return {
            **os.environ,
            "TRAINWRIGHT_HOME": str(self.home.folder),
            "KUBECONFIG": str(self.home.kubeconfig),
            "NO_COLOR": "1",
            "HOME": str(self.scratch),
        }

    @property
    def record(self) -> PlaneRecord:
        record = find_plane(self.home)
        assert record is not None, "the plane is not up"
        return record

    @property
    def connection(self) -> Connection:
        return read_kubeconfig(self.home.kubeconfig)

    def popen(self, *command: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(TRAINWRIGHT), *command],
            env=self.environ,
            cwd=self.scratch,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=_mind_ctrl_c,
            **options,
        )

    def cli(self, *arguments: str, code: int | None = 0, stdin: str = "") -> str:
        """Output of a `trainwright` command; `code` is the exit code that it must have."""
        return self._run([str(TRAINWRIGHT), *arguments], code, stdin)

    def kubectl(self, *arguments: str, code: int | None = 0, stdin: str = "") -> str:
        """Output of kubectl against the plane."""
        return self._run([KUBECTL, *arguments], code, stdin)

    def _run(self, command: Sequence[str], code: int | None, stdin: str) -> str:
        done = subprocess.run(
            command,
            env=self.environ,
            cwd=self.scratch,
            input=stdin,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=COMMAND_LIMIT_S,
            check=False,
            preexec_fn=_mind_ctrl_c,
        )
        assert code is None or done.returncode == code, (
            f"{' '.join(command)} ended with {done.returncode}, not {code}:\n{done.stdout}"
        )
        return done.stdout

    def get(self, kind: str, name: str = "", *more: str) -> Any:
        """An object or list as kubectl gets it, as JSON; None when it is not there."""
        text = self.kubectl("get", kind, *([name] if name else []), *more, "-o", "json", code=None)
        return msgspec.json.decode(text) if text.startswith("{") else None

    def apply(self, *objects: dict[str, Any]) -> str:
        return self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def condition(self, name: str, type: str, kind: str = "trainjob") -> dict[str, Any] | None:
        """The condition when its status is True."""
        obj = self.get(kind, name) or {}
        conditions = obj.get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == type and c["status"] == "True"), None)

    def wait_condition(self, name: str, type: str, kind: str = "trainjob") -> dict[str, Any]:
        found: dict[str, Any] = wait_until(
            lambda: self.condition(name, type, kind), f"{kind} {name} is {type}"
        )
        return found

    def pods(self, job: str = "") -> list[dict[str, Any]]:
        selector = ["-l", f"jobset.sigs.k8s.io/jobset-name={job}"] if job else []
        items: list[dict[str, Any]] = self.get("pods", "", *selector)["items"]
        return items

    def processes(self) -> list[int]:
        """Every process that carries this plane's folder in its command line or environment."""
        mark = str(self.home.folder).encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal() or int(entry.name) == os.getpid():
                continue
            try:
                if b") Z " in (entry / "stat").read_bytes():
                    continue
                said = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if mark in said:
                found.append(int(entry.name))
        return found

    def pod_processes(self) -> list[int]:
        """Processes of Pods: all but the plane itself."""
        record = find_plane(self.home)
        return [pid for pid in self.processes() if record is None or pid != record.pid]

    def kill(self) -> None:
        """`kill -9` of the plane."""
        pid = self.record.pid
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: find_plane(self.home) is None, "the plane is dead")

    def kill_pods(self) -> None:
        """`kill -9` of every process of Pods, keepers too."""
        _kill_all(self.pod_processes())

    def up(self, *arguments: str) -> None:
        self.cli("up", "--detach", *arguments)


def _kill_all(pids: Sequence[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # gone with its keeper
            os.kill(pid, signal.SIGKILL)


def _mind_ctrl_c() -> None:
    # A test run that a shell started in the background would hand "ignore" down to the command.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def make_plane(folder: Path, *arguments: str, up: bool = True) -> Iterator[TestPlane]:
    """A plane in `folder`, stopped afterwards, with nothing left running."""
    scratch = folder / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    plane = TestPlane(Home(folder / "home"), scratch)
    try:
        if up:
            plane.up(*arguments)
        yield plane
    finally:
        try:
            plane.cli("down", code=None)
        finally:
            _kill_all(plane.processes())


def make_runtime(name: str, **spec: Any) -> dict[str, Any]:
    """A ClusterTrainingRuntime whose nodes fail at their first error; `spec` is the JobSet's.

    Left alone, JobSet restarts containers in place, six times with growing pauses.
    """
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name},
        "spec": {
            "mlPolicy": {"numNodes": 1},
            "template": {
                "spec": {
                    "replicatedJobs": [
                        {
                            "name": "node",
                            "template": {
                                "metadata": {
                                    "labels": {
                                        "trainer.kubeflow.org/trainjob-ancestor-step": "trainer"
                                    }
                                },
                                "spec": {
                                    "backoffLimit": 0,
                                    "template": {
                                        "spec": {
                                            "restartPolicy": "Never",
                                            "containers": [{"name": "node", "image": "local"}],
                                        }
                                    },
                                },
                            },
                        }
                    ],
                    **spec,
                }
            },
        },
    }


def make_trainjob(
    name: str,
    command: Sequence[str],
    *,
    runtime: str = "plain-distributed",
    nodes: int = 1,
    **spec: Any,
) -> dict[str, Any]:
    """The smallest TrainJob that runs a command."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": runtime},
            "trainer": {"numNodes": nodes, "command": list(command)},
            **spec,
        },
    }
