"""What the rows share: figures, rounds, and a plane of their own."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainwright.machinery.client import HttpApi
from trainwright.machinery.kubeconfig import read_kubeconfig
from trainwright.plane.home import Home
from trainwright.plane.process import PlaneRecord, find_plane, start_plane, stop_plane

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence


@dataclass(frozen=True)
class Figure:
    what: str
    value: str
    budget: str = ""


def spread(values: Sequence[float], unit: str, digits: int = 0) -> str:
    """`median unit (least to most, rounds)`."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} {unit} ({low:.{digits}f} to {high:.{digits}f}, {len(values)} runs)"


def run_process(
    command: Sequence[str], environ: dict[str, str] | None = None
) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak memory (MB) of a process that must succeed."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, **(environ or {})},
    )
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - started
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {errors.decode()[-500:]}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def python(code: str) -> tuple[float, float, float]:
    return run_process([sys.executable, "-c", code])


def rounds(count: int, measure: Callable[[], float]) -> list[float]:
    return [measure() for _ in range(count)]


@asynccontextmanager
async def plane(*arguments: str) -> AsyncIterator[tuple[Home, PlaneRecord, HttpApi]]:
    """A warm plane in a folder of its own, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="trainwright-benchmark."))
    home = Home(folder / "home")
    try:
        record = await asyncio.to_thread(start_plane, home, arguments)
        async with HttpApi(read_kubeconfig(home.kubeconfig)) as api:
            yield home, record, api
    finally:
        if find_plane(home) is not None:
            await asyncio.to_thread(stop_plane, home)
        shutil.rmtree(folder, ignore_errors=True)


def memory_mb(pid: int) -> float:
    """Resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / 1024**2


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
