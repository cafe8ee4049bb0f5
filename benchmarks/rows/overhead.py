"""What a job costs above plain torchrun: the same 60 s of work, both ways, in turns."""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Figure, plane, run_process
from benchmarks.rows.jobs_of import create, make_trainjob, remove, wait_complete

if TYPE_CHECKING:
    from collections.abc import Sequence

# A fixed time of work in torch, then the number of steps that fitted in: what is stolen shows there.
SCRIPT = """
import time, torch
torch.set_num_threads(1)
matrix, steps, end = torch.randn(200, 200), 0, time.monotonic() + {seconds}
while time.monotonic() < end:
    matrix = torch.tanh(matrix @ matrix / 200); steps += 1
open({mark!r}, "w").write(str(steps))
"""


async def measure(quick: bool) -> Sequence[Figure]:
    seconds, count = (5, 1) if quick else (60, 3)
    torchrun = str(Path(sys.executable).with_name("torchrun"))
    walls: dict[str, list[float]] = {"plain": [], "job": []}
    steps: dict[str, list[int]] = {"plain": [], "job": []}
    with tempfile.TemporaryDirectory(prefix="trainwright-benchmark.") as folder:
        script, mark = Path(folder) / "work.py", Path(folder) / "steps"
        script.write_text(SCRIPT.format(seconds=seconds, mark=str(mark)))
        async with plane() as (_, _, api):
            for number in range(count):
                wall, _, _ = await asyncio.to_thread(
                    run_process,
                    [torchrun, "--nproc-per-node", "1", str(script)],
                    {"OMP_NUM_THREADS": "1"},
                )
                walls["plain"].append(wall)
                steps["plain"].append(int(mark.read_text()))
                name = f"work-{number}"
                job = make_trainjob(name, ["torchrun", str(script)], numProcPerNode=1)
                job["spec"]["runtimeRef"]["name"] = "torch-distributed"
                started = time.perf_counter()
                await create(api, job)
                await wait_complete(api, name)
                walls["job"].append(time.perf_counter() - started)
                steps["job"].append(int(mark.read_text()))
                await remove(api, name)
    wall = 100 * (statistics.median(walls["job"]) / statistics.median(walls["plain"]) - 1)
    work = 100 * (1 - statistics.median(steps["job"]) / statistics.median(steps["plain"]))
    return [
        Figure(f"wall time above plain torchrun, {seconds} s job", f"{wall:+.2f} %", "1 %"),
        Figure("steps lost against plain torchrun in the same time", f"{work:+.2f} %", "1 %"),
    ]
