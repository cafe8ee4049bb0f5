"""A machine of one's own inside this one: namespaces and control groups that vanish together.

What runs in it has its own network without a way out, its own processes, mounts and control groups;
nothing outside is mounted, unmounted or set. Ending its first process ends everything in it.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import subprocess
import threading
import time
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster.processes import LaneFailure, running

if TYPE_CHECKING:
    from collections.abc import Iterator

INIT = Path(__file__).with_name("machine_init.sh")
CGROUPS = Path("/sys/fs/cgroup")
START_S = 30.0
CLONE_NEWNET = 0x40000000
_NAMESPACES = ("--net", "--mount", "--pid", "--cgroup", "--ipc", "--uts")


class Machine:
    """A machine that runs; `enter` is what leads a command into it."""

    def __init__(self, folder: Path, name: str, address: str, groups: list[Path]) -> None:
        self.folder = folder
        self.name = name
        self.address = address
        self.groups = groups
        self.pid = 0
        """Its first process, as this side sees it."""

    @property
    def enter(self) -> list[str]:
        """Put in front of a command, makes it run inside; call `join` in the child before."""
        return ["nsenter", f"--target={self.pid}", *_NAMESPACES, "--"]

    def join(self) -> None:
        """Take this process into the machine's control groups."""
        for group in self.groups:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    def run(self, *command: str, limit_s: float = 120) -> str:
        """Output of a command inside."""
        done = subprocess.run(
            [*self.enter, *command],
            text=True,
            capture_output=True,
            timeout=limit_s,
            check=False,
            preexec_fn=self.join,
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
        return done.stdout


@contextmanager
def make_machine(folder: Path, name: str, address: str) -> Iterator[Machine]:
    """A machine with the host name `name` and the address `address` (of a /24)."""
    if not _may_make_machines():
        pytest.skip("a machine of one's own needs root, namespaces and control groups of version 1")
    folder.mkdir(parents=True, exist_ok=True)
    groups = _make_groups(f"trainwright-{os.getpid()}-{uuid.uuid4().hex[:6]}")
    machine = Machine(folder, name, address, groups)
    log = folder / "init.log"
    command = [
        *("unshare", *_NAMESPACES, "--fork", "--kill-child", "--propagation=private"),
        *("--mount-proc", "bash", str(INIT), name, address, str(folder)),
    ]
    try:
        with running(command, log, dict(os.environ), before=machine.join) as unshare:
            _wait_made(machine, unshare, log)
            try:
                yield machine
            finally:
                with suppress(ProcessLookupError):
                    os.kill(machine.pid, signal.SIGKILL)
                unshare.wait(START_S)
    finally:
        _remove_groups(groups)


def _may_make_machines() -> bool:
    probe = ["unshare", *_NAMESPACES, "--fork", "--propagation=private", "--mount-proc", "true"]
    return (
        os.geteuid() == 0
        and os.access(CGROUPS / "memory", os.W_OK)
        and subprocess.run(probe, check=False, capture_output=True).returncode == 0
    )


def _wait_made(machine: Machine, unshare: subprocess.Popen[bytes], log: Path) -> None:
    children = Path(f"/proc/{unshare.pid}/task/{unshare.pid}/children")
    deadline = time.monotonic() + START_S
    while not (machine.folder / "ready").exists():
        if unshare.poll() is not None or time.monotonic() > deadline:
            raise LaneFailure(f"no machine could be made: {log.read_text()}")
        time.sleep(0.05)
    machine.pid = int(children.read_text().split()[0])


def _make_groups(name: str) -> list[Path]:
    """A group of that name below the current one, in each hierarchy of version 1."""
    groups = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, own = line.split(":", 2)
        if not controllers:
            continue
        parent = CGROUPS / controllers.removeprefix("name=") / own.lstrip("/")
        group = parent / name
        group.mkdir()
        if controllers == "cpuset":
            for file in ("cpuset.cpus", "cpuset.mems"):
                (group / file).write_text((parent / file).read_text())
        groups.append(group)
    return groups


def _remove_groups(groups: list[Path]) -> None:
    deadline = time.monotonic() + START_S
    for group in groups:
        while group.exists():
            for folder, _, _ in os.walk(group, topdown=False):
                with suppress(OSError):  # something in it is still ending
                    Path(folder).rmdir()
            if time.monotonic() > deadline:
                raise LaneFailure(f"{group} cannot be removed")
            time.sleep(0.02)


class Tunnel:
    """A port of this side's loopback that leads to the same port of a machine's."""

    def __init__(self, machine: Machine, port: int) -> None:
        self._machine = machine
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", port), reuse_port=False)
        self._thread = threading.Thread(target=self._serve, name=f"tunnel-{port}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        # Sockets of this thread are the machine's; the listener was made before, on this side.
        with open(f"/proc/{self._machine.pid}/ns/net") as namespace:
            assert ctypes.CDLL(None).setns(namespace.fileno(), CLONE_NEWNET) == 0
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._port), timeout=5)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            threading.Thread(target=_pump, args=(near, far), daemon=True).start()


def _pump(near: socket.socket, far: socket.socket) -> None:
    peers = {near: far, far: near}
    open_ends = {near, far}
    with near, far:
        while open_ends:
            for source in select.select(list(open_ends), [], [])[0]:
                try:
                    data = source.recv(65536)
                    if data:
                        peers[source].sendall(data)
                        continue
                    peers[source].shutdown(socket.SHUT_WR)
                except OSError:
                    return
                open_ends.discard(source)
