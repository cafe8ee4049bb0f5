"""Many one-Pod TrainJobs through the plane: is it linear, what does the plane's memory come to."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from benchmarks.measure import Figure, cpu_seconds, memory_mb, plane
from benchmarks.rows.jobs_of import create, make_trainjob
from trainwright.api.kinds import TRAINJOB
from trainwright.base.objects import is_condition_true

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.machinery.client import HttpApi

AT_ONCE = 8


async def measure(quick: bool) -> Sequence[Figure]:
    figures = []
    sizes = (20, 100) if quick else (250, 1000)
    for size in sizes:
        async with plane() as (_, record, api):
            started, cpu = time.perf_counter(), cpu_seconds(record.pid)
            await _run(api, size)
            took = time.perf_counter() - started
            cost = 1000 * (cpu_seconds(record.pid) - cpu) / size
            memory = memory_mb(record.pid)
        figures.append(
            Figure(
                f"{size:,} one-Pod TrainJobs, created to complete",
                f"{took:.0f} s ({size / took:.1f} a second), {cost:.0f} ms CPU a job, plane {memory:.0f} MB",
                "linear; below 300 MB" if size == sizes[-1] else "",
            )
        )
    return figures


async def _run(api: HttpApi, size: int) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def submit(number: int) -> None:
        async with gate:
            await create(api, make_trainjob(f"job-{number}", ["true"]))

    await asyncio.gather(*(submit(number) for number in range(size)))
    while True:
        jobs = await api.list_all(TRAINJOB, "default")
        if sum(is_condition_true(job, "Complete") for job in jobs) == size:
            return
        await asyncio.sleep(0.5)
