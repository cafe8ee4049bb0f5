"""Memory of the process that keeps each container, beside a bare Python interpreter."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Figure, memory_mb, plane
from benchmarks.rows.jobs_of import create, make_trainjob, remove

if TYPE_CHECKING:
    from collections.abc import Sequence

PODS = 4


async def measure(quick: bool) -> Sequence[Figure]:
    async with plane() as (home, _, api):
        await create(api, make_trainjob("kept", ["sleep", "600"], nodes=PODS))
        keepers = _wait_for_keepers(str(home.folder))
        resident = sum(map(memory_mb, keepers)) / PODS
        own = sum(map(_proportional_mb, keepers)) / PODS
        await remove(api, "kept")
    bare = subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE)
    time.sleep(1)
    base = memory_mb(bare.pid)
    bare.communicate(b"\n")
    return [
        Figure("memory of a container's keeper, resident", f"{resident:.1f} MB", "8 MB"),
        Figure("its share when shared pages are split between processes", f"{own:.1f} MB"),
        Figure("a bare Python interpreter, resident", f"{base:.1f} MB", "compare"),
    ]


def _wait_for_keepers(folder: str) -> list[int]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = [
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdecimal() and _is_keeper(entry, folder)
        ]
        if len(found) >= PODS:
            time.sleep(1)
            return found
        time.sleep(0.1)
    raise SystemExit("the job's keepers did not start")


def _is_keeper(process: Path, folder: str) -> bool:
    try:
        command = (process / "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return False
    return "shim" in command and folder in command


def _proportional_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("this kernel does not tell shares of memory")
