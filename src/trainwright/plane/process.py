"""The plane as a process: starting one in the background, finding the one that runs, stopping it."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import msgspec

from trainwright.base.errors import LocalRunError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.plane.home import Home

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
POLL_S = 0.02
LOG_TAIL_CHARACTERS = 2000
SMALLEST_ROOM_BYTES = 1_000_000
"""With less free, a start that said nothing is taken to have failed for want of room."""


class PlaneRecord(msgspec.Struct, frozen=True):
    """What a running plane says of itself in its folder."""

    pid: int
    started: str
    """When the process started, as the system counts it: tells it from a later one of that pid."""
    server: str
    """`https://127.0.0.1:port`."""
    version: str
    isolation: str = "none"
    temporary: bool = False
    """Ends by itself once no job is left: it was started by `run`."""


def find_plane(home: Home) -> PlaneRecord | None:
    """The plane that runs on this folder, if one does."""
    try:
        record = msgspec.json.decode(home.record.read_bytes(), type=PlaneRecord)
    except (OSError, msgspec.DecodeError):
        return None
    return record if find_start(record.pid) == record.started else None


def find_start(pid: int) -> str:
    """When a process started, in the system's own words; "" when there is none.

    A zombie counts as none: it runs nothing any more.
    """
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except FileNotFoundError:
        return _find_start_without_proc(pid)
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _find_start_without_proc(pid: int) -> str:
    if os.path.isdir("/proc/self"):
        return ""
    answer = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip()


def write_record(home: Home, record: PlaneRecord) -> None:
    """Put the record in place at once, never half of it."""
    draft = home.record.with_suffix(".new")
    draft.touch(mode=0o600)
    draft.write_bytes(msgspec.json.encode(record))
    draft.rename(home.record)


def start_plane(home: Home, arguments: Sequence[str] = ()) -> PlaneRecord:
    """Start a plane in the background and wait until it is ready.

    Raises:
        LocalRunError: with the end of its log, when it ends instead.
    """
    home.ensure()
    command = [
        sys.executable,
        "-m",
        "trainwright.plane",
        "--data-dir",
        str(home.folder),
        *arguments,
    ]
    descriptor = os.open(home.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=home.folder,
        )
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        record = find_plane(home)
        if record is not None:
            return record
        if process.poll() is not None:
            raise LocalRunError(_last_words(home) or "the plane ended at its start")
        time.sleep(POLL_S)
    process.terminate()
    raise LocalRunError(
        f"the plane was not ready after {START_TIMEOUT_S:.0f} s; {home.log} says why"
    )


def stop_plane(home: Home, *, timeout_s: float = STOP_TIMEOUT_S) -> bool:
    """Ask the running plane to end and wait for it; False when none ran.

    Raises:
        LocalRunError: it did not end in time.
    """
    record = find_plane(home)
    if record is None:
        return False
    os.kill(record.pid, signal.SIGTERM)
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if find_start(record.pid) != record.started:
            return True
        _reap(record.pid)
        time.sleep(POLL_S)
    raise LocalRunError(
        f"the plane (process {record.pid}) did not end in {timeout_s:.0f} s; {home.log} says why"
    )


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):  # somebody else's child: its own parent takes it
        os.waitpid(pid, os.WNOHANG)


def _last_words(home: Home) -> str:
    text = home.log.read_text(errors="replace")[-LOG_TAIL_CHARACTERS:].strip()
    if not text and shutil.disk_usage(home.folder).free < SMALLEST_ROOM_BYTES:
        return describe_full_disk(home)
    return text.removeprefix("error: ")


def is_out_of_space(error: Exception) -> bool:
    """Whether the disk, or the user's part of it, is full."""
    return isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}


def describe_full_disk(home: Home) -> str:
    """What to do when a plane cannot even start."""
    return (
        f"the disk of {home.folder} is full and the plane cannot start; nothing was changed. "
        f"Free some space; the logs of jobs are in {home.pods}"
    )
