"""What an idle plane costs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from benchmarks.measure import Figure, cpu_seconds, memory_mb, plane

if TYPE_CHECKING:
    from collections.abc import Sequence


async def measure(quick: bool) -> Sequence[Figure]:
    seconds = 5 if quick else 60
    async with plane() as (home, record, _):
        await asyncio.sleep(3)
        cpu, written = cpu_seconds(record.pid), _newest(home.store)
        await asyncio.sleep(seconds)
        used = cpu_seconds(record.pid) - cpu
        wrote = _newest(home.store) != written
        memory = memory_mb(record.pid)
    return [
        Figure(f"CPU of an idle plane in {seconds} s", f"{1000 * used:.0f} ms"),
        Figure("an idle plane writes to its store", "yes" if wrote else "no", "no"),
        Figure("memory of an idle plane", f"{memory:.0f} MB"),
    ]


def _newest(folder: object) -> float:
    from pathlib import Path

    return max(file.stat().st_mtime for file in Path(str(folder)).rglob("*") if file.is_file())
