"""From the start of the plane's process to ready."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Figure, spread
from trainwright.plane.home import Home
from trainwright.plane.process import start_plane, stop_plane

if TYPE_CHECKING:
    from collections.abc import Sequence


async def measure(quick: bool) -> Sequence[Figure]:
    first, later = [], []
    for _ in range(2 if quick else 7):
        folder = Path(tempfile.mkdtemp(prefix="trainwright-benchmark."))
        try:
            first.append(_start(Home(folder / "home")))
            later.append(_start(Home(folder / "home")))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return [
        Figure("plane, start to ready, first time in a folder", spread(first, "ms"), "700 ms"),
        Figure("plane, start to ready, again", spread(later, "ms"), "700 ms"),
    ]


def _start(home: Home) -> float:
    started = time.perf_counter()
    start_plane(home)
    took_ms = 1000 * (time.perf_counter() - started)
    stop_plane(home)
    return took_ms
