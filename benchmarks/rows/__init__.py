"""The rows, by the names that the command line knows."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence

from benchmarks.measure import Figure
from benchmarks.rows import (
    burst,
    idle,
    imports,
    informers,
    jobs,
    keeper,
    launch,
    overhead,
    server,
    start,
)

Row = Callable[[bool], Coroutine[None, None, Sequence[Figure]]]

ROWS: Mapping[str, Row] = {
    "imports": imports.measure,
    "start": start.measure,
    "launch": launch.measure,
    "keeper": keeper.measure,
    "overhead": overhead.measure,
    "jobs": jobs.measure,
    "server": server.measure,
    "idle": idle.measure,
    "informers": informers.measure,
    "burst": burst.measure,
}
