"""What the informers of a controller cost: memory, time to sync, the longest stall, CPU when idle.

They run in a process of their own, which this module is too: `python -m benchmarks.rows.informers
KUBECONFIG SECONDS` prints its figures as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Figure, cpu_seconds, memory_mb, plane
from trainwright.api.kinds import CLUSTER_TRAINING_RUNTIME, CONFIG_MAP, JOBSET, TRAINJOB
from trainwright.machinery.client import HttpApi
from trainwright.machinery.informer import InformerSet
from trainwright.machinery.kubeconfig import read_kubeconfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.base.objects import Object

AT_ONCE = 16
RUNTIME = "torch-distributed"


async def measure(quick: bool) -> Sequence[Figure]:
    count, idle_s = (200, 3) if quick else (10_000, 60)
    async with plane("--no-node", "--controllers", "expiry") as (home, _, api):
        await _fill(api, count)
        command = [sys.executable, "-m", __name__, str(home.kubeconfig), str(idle_s)]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=True)
        seen = json.loads(done.stdout)
    if seen["objects"] < 2 * count:
        raise SystemExit(f"the informers saw {seen['objects']} objects of {2 * count}")
    what = f"informers of {count:,} TrainJobs and {count:,} JobSets"
    return [
        Figure(f"{what}: memory for 1,000 jobs", f"{1000 * seen['mb'] / count:.1f} MB"),
        Figure(f"{what}: until they have synced", f"{seen['sync_s']:.2f} s"),
        Figure(f"{what}: longest stall of the loop", f"{1000 * seen['stall_s']:.0f} ms"),
        Figure(f"{what}: CPU in {idle_s} s without changes", f"{1000 * seen['idle_cpu_s']:.0f} ms"),
    ]


async def _fill(api: HttpApi, count: int) -> None:
    """TrainJobs and JobSets of the sizes that real ones have, made by nobody's controller."""
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            name = f"job-{number}"
            made = await api.create(TRAINJOB, _trainjob(name), field_manager="benchmark")
            await api.create(JOBSET, _jobset(name, made), field_manager="trainer")

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))


def _trainjob(name: str) -> Object:
    env = [{"name": f"SETTING_{number}", "value": "x" * 40} for number in range(12)]
    return {
        "apiVersion": TRAINJOB.api_version,
        "kind": TRAINJOB.kind,
        "metadata": {"name": name, "namespace": "default", "labels": {"team": "benchmark"}},
        "spec": {
            "runtimeRef": {"name": RUNTIME},
            "trainer": {"numNodes": 4, "command": ["python", "train.py"], "env": env},
        },
    }


def _jobset(name: str, owner: Object) -> Object:
    env = [{"name": f"SETTING_{number}", "value": "x" * 40} for number in range(60)]
    container = {"name": "node", "image": "image", "command": ["python"], "env": env}
    pod = {"restartPolicy": "Never", "containers": [container]}
    job = {"parallelism": 4, "completions": 4, "template": {"spec": pod}}
    reference = {
        "apiVersion": TRAINJOB.api_version,
        "kind": TRAINJOB.kind,
        "name": name,
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": JOBSET.api_version,
        "kind": JOBSET.kind,
        "metadata": {"name": name, "namespace": "default", "ownerReferences": [reference]},
        "spec": {"replicatedJobs": [{"name": "node", "template": {"spec": job}}]},
    }


async def _watch_loop(stalls: list[float], pause_s: float = 0.001) -> None:
    while True:
        started = time.perf_counter()
        await asyncio.sleep(pause_s)
        stalls.append(time.perf_counter() - started - pause_s)


async def _read(kubeconfig: Path, idle_s: float) -> dict[str, float]:
    async with HttpApi(read_kubeconfig(kubeconfig)) as api:
        informers = InformerSet(api)
        kinds = (TRAINJOB, JOBSET, CONFIG_MAP, CLUSTER_TRAINING_RUNTIME)
        for kind in kinds:
            informers.subscribe(kind, lambda *_: None)
        stalls: list[float] = []
        before, started = memory_mb(os.getpid()), time.perf_counter()
        watching = asyncio.create_task(_watch_loop(stalls))
        running = asyncio.create_task(informers.run())
        await informers.wait_synced()
        sync_s = time.perf_counter() - started
        await asyncio.sleep(1)
        watching.cancel()
        mb = memory_mb(os.getpid()) - before
        cpu = cpu_seconds(os.getpid())
        await asyncio.sleep(idle_s)
        idle_cpu_s = cpu_seconds(os.getpid()) - cpu
        running.cancel()
        await asyncio.gather(watching, running, return_exceptions=True)
    return {
        "objects": sum(len(informers.informer(kind)) for kind in kinds),
        "mb": mb,
        "sync_s": sync_s,
        "stall_s": max(stalls),
        "idle_cpu_s": idle_cpu_s,
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_read(Path(sys.argv[1]), float(sys.argv[2])))))
