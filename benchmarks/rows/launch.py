"""From the request that submits a 4-Pod job to the moment its last process has been started."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Figure, plane, spread
from benchmarks.rows.jobs_of import create, make_trainjob, remove, wait_complete

if TYPE_CHECKING:
    from collections.abc import Sequence

PODS = 4


async def measure(quick: bool) -> Sequence[Figure]:
    took = []
    with tempfile.TemporaryDirectory(prefix="trainwright-benchmark.") as folder:
        async with plane() as (_, _, api):
            for number in range(-1, 3 if quick else 15):
                marks = Path(folder) / str(number)
                marks.mkdir()
                # The shell is what gets started: its own first act is the mark.
                command = ["sh", "-c", f": > {marks}/$JOB_COMPLETION_INDEX; sleep 0.2"]
                started = time.time()
                await create(api, make_trainjob(f"launch-{number + 1}", command, nodes=PODS))
                while len(list(marks.iterdir())) < PODS:
                    await asyncio.sleep(0.002)
                last = max(mark.stat().st_mtime for mark in marks.iterdir())
                await wait_complete(api, f"launch-{number + 1}")
                await remove(api, f"launch-{number + 1}")
                if number >= 0:  # the first warms the plane up
                    took.append(1000 * (last - started))
    return [
        Figure(
            "submit to all processes of a 4-Pod job started, plane warm",
            spread(took, "ms"),
            "150 ms median",
        )
    ]
