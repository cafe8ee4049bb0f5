"""Servers as child processes: they end with the test run, whatever ends it, and their logs are kept."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster.builds import find_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

READY_S = 120.0
STOP_S = 20.0
POLL_S = 0.05
LOG_TAIL_CHARACTERS = 3000
_PR_SET_PDEATHSIG = 1


class LaneFailure(AssertionError):
    """A server did not come up; says what it logged."""


def require_server(name: str) -> Path:
    """A server that was built; the test is skipped when it was not."""
    binary = find_server(name)
    if binary is None:
        pytest.skip(f"{name} is not built; run scripts/servers")
    return binary


def require_program(name: str) -> str:
    """A program of the system; the test is skipped when it is not installed."""
    found = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
    if found is None:
        pytest.skip(f"{name} is not installed; run scripts/servers as root")
    return found


@contextmanager
def running(
    command: Sequence[str],
    log: Path,
    environ: Mapping[str, str] | None = None,
    *,
    before: Callable[[], None] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server; at the end it is asked to go, and made to go. `before` runs in the child."""

    def prepare() -> None:
        _die_with_parent()
        if before is not None:
            before()

    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environ,
            start_new_session=True,
            preexec_fn=prepare,
        )
    try:
        yield process
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a server, also one that runs in a machine of its own behind `nsenter`."""
    inside = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if process.args[0] == "nsenter" and process.poll() is None:  # type: ignore[index]  # a list
        for child in inside.read_text().split():
            os.kill(int(child), signal.SIGTERM)
    else:
        process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_ready(
    is_ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path, what: str
) -> None:
    """Wait until a server answers.

    Raises:
        LaneFailure: with the end of its log, when it ends or stays silent.
    """
    deadline = time.monotonic() + READY_S
    while not is_ready():
        ended = process.poll()
        if ended is not None or time.monotonic() > deadline:
            said = log.read_text(errors="replace")[-LOG_TAIL_CHARACTERS:]
            how = "was not ready in time" if ended is None else f"ended with {ended}"
            raise LaneFailure(f"{what} {how}; it said:\n{said}")
        time.sleep(POLL_S)


def find_free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now; all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
