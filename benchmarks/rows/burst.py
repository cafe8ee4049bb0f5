"""A burst of TrainJobs on a real API server: how fast a controller makes their JobSets.

`BURST_CONTROLLER` takes the command line of another controller, to be put beside ours; `{kubeconfig}`
and `{folder}` in it are filled in. It needs the servers that `scripts/servers --only api` builds.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from tests.cluster.api_lane import make_api_lane
from tests.cluster.processes import running

from benchmarks.measure import Figure, cpu_seconds, memory_mb
from benchmarks.rows.jobs_of import make_trainjob
from trainwright.api.crds import build_crd
from trainwright.api.kinds import CLUSTER_TRAINING_RUNTIME, JOBSET, TRAINJOB
from trainwright.base.errors import TooManyRequests
from trainwright.base.objects import name_of
from trainwright.core.runtimes import load_shipped_runtimes
from trainwright.machinery.apply import apply_object
from trainwright.machinery.client import HttpApi

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.cluster.api_lane import ApiLane

AT_ONCE = 16
PREFIX = "burst-"
LIMIT_S = 300.0
OURS = "{trainwright} controller --kubeconfig {kubeconfig} --config {folder}/config.yaml"
RATES = (("raised client rates", 1000, 2000), ("default client rates, 50 and 100", 50, 100))


async def measure(quick: bool) -> Sequence[Figure]:
    count = 100 if quick else 1000
    figures: list[Figure] = []
    for what, qps, burst in RATES:
        with (
            tempfile.TemporaryDirectory(prefix="trainwright-burst.") as folder,
            make_api_lane(Path(folder) / "lane") as lane,
        ):
            lane.install_crds([build_crd(JOBSET)])
            with _controller(lane, Path(folder), qps, burst) as pid:
                figures += await _measure(lane, pid, count, what)
    return figures


@contextmanager
def _controller(lane: ApiLane, folder: Path, qps: int, burst: int) -> Iterator[int]:
    config: dict[str, Any] = {
        "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": "0"},
        "metrics": {"bindAddress": "0"},
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": qps, "burst": burst},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    line = os.environ.get("BURST_CONTROLLER", OURS)
    ours = Path(sys.executable).with_name("trainwright")
    places = {"trainwright": ours, "kubeconfig": lane.kubeconfig, "folder": folder}
    with running([word.format(**places) for word in shlex.split(line)], folder / "log") as process:
        yield process.pid


async def _measure(lane: ApiLane, pid: int, count: int, what: str) -> Sequence[Figure]:
    async with HttpApi(lane.connection) as api:
        for runtime in load_shipped_runtimes():
            await apply_object(api, CLUSTER_TRAINING_RUNTIME, runtime, "benchmark")
        await _make_one(api)
        cpu, started = cpu_seconds(pid), time.perf_counter()
        arrived: dict[str, float] = {}
        watching = asyncio.create_task(_watch(api, arrived, count))
        created = await _create(api, count)
        async with asyncio.timeout(LIMIT_S):
            await watching
        took = max(arrived.values()) - started
        waits = sorted(arrived[name] - at for name, at in created.items())
    cost = 1000 * (cpu_seconds(pid) - cpu) / count
    p99 = waits[int(0.99 * (len(waits) - 1))]
    burst = f"burst of {count:,} TrainJobs, {what}"
    raised = what == RATES[0][0]
    return [
        Figure(f"{burst}: JobSets a second", f"{count / took:.0f}", "100" if raised else ""),
        Figure(
            f"{burst}: TrainJob to JobSet",
            f"median {statistics.median(waits):.2f} s, p99 {p99:.2f} s",
        ),
        Figure(f"{burst}: CPU a job", f"{cost:.1f} ms", "5 ms" if raised else ""),
        Figure(f"{burst}: resident", f"{memory_mb(pid):.0f} MB", "150 MB" if raised else ""),
    ]


async def _make_one(api: HttpApi) -> None:
    """See the controller work before the clock starts."""
    await api.create(TRAINJOB, make_trainjob("warm", ["true"]), field_manager="benchmark")
    async with asyncio.timeout(LIMIT_S):
        while not await _has_jobset(api):
            await asyncio.sleep(0.1)


async def _has_jobset(api: HttpApi) -> bool:
    try:
        return bool((await api.list(JOBSET, "default")).items)
    except TooManyRequests:  # a kind that is new is not served at once
        return False


async def _watch(api: HttpApi, arrived: dict[str, float], count: int) -> None:
    start = (await api.list(JOBSET, "default")).resource_version
    async for event in api.watch(JOBSET, "default", resource_version=start):
        if name_of(event.object).startswith(PREFIX):
            arrived.setdefault(name_of(event.object), time.perf_counter())
        if len(arrived) >= count:
            return


async def _create(api: HttpApi, count: int) -> dict[str, float]:
    created: dict[str, float] = {}
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            name = f"{PREFIX}{number}"
            created[name] = time.perf_counter()
            await api.create(TRAINJOB, make_trainjob(name, ["true"]), field_manager="benchmark")

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(worker())
    return created
