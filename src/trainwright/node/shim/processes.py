"""Processes of this machine: who descends from whom, their memory, their end."""

# ruff: noqa: D103 - a program: nobody calls these from outside
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def read_processes() -> dict[int, int]:
    """Every process as {pid: parent pid}; empty where the system does not say."""
    parents = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return read_processes_by_ps()
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            parents[int(name)] = int(fields[1])
    return parents


def read_processes_by_ps() -> dict[int, int]:
    with os.popen("ps -axo pid=,ppid=") as table:  # noqa: S605 - fixed text
        rows = [line.split() for line in table]
    return {int(row[0]): int(row[1]) for row in rows if len(row) == 2}


def find_descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in read_processes().items():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    queue = [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def read_start_time(pid: int) -> int:
    """Clock ticks from boot to the process' start: with the pid it names one process for good."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == b"Z" else int(fields[19])


def read_boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def read_private_bytes(pids: list[int]) -> int:
    """Memory of the processes without what they share; an upper bound when pages are copy-on-write."""
    page, total = os.sysconf("SC_PAGE_SIZE"), 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm", "rb") as file:
                fields = file.read().split()
        except OSError:
            continue
        total += (int(fields[1]) - int(fields[2])) * page
    return total


def read_proportional_bytes(pids: list[int]) -> int:
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:"))
    return total


def load_libc() -> Any:
    try:
        import ctypes

        return ctypes.CDLL(None, use_errno=True)
    except (ImportError, OSError):
        return None


def become_subreaper(libc: Any) -> None:
    """Orphans of the container become our children, so that none escapes the end."""
    if sys.platform == "linux" and libc is not None:
        libc.prctl(36, 1, 0, 0, 0)
