"""Small TrainJobs for the rows."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from trainwright.api.kinds import TRAINJOB
from trainwright.base.errors import NotFound
from trainwright.base.objects import Object, is_condition_true

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.machinery.client import HttpApi

RUNTIME = "plain-distributed"


def make_trainjob(
    name: str, command: Sequence[str], *, nodes: int = 1, **trainer: object
) -> Object:
    return {
        "apiVersion": TRAINJOB.api_version,
        "kind": TRAINJOB.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "runtimeRef": {"name": RUNTIME},
            "trainer": {"numNodes": nodes, "command": list(command), **trainer},
        },
    }


async def create(api: HttpApi, job: Object) -> None:
    await api.create(TRAINJOB, job, field_manager="benchmark")


async def wait_complete(api: HttpApi, name: str, limit_s: float = 300) -> None:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        job = await api.get(TRAINJOB, "default", name)
        if is_condition_true(job, "Complete"):
            return
        if is_condition_true(job, "Failed"):
            raise SystemExit(f"{name} failed: {job['status']['conditions']}")
        await asyncio.sleep(0.05)
    raise SystemExit(f"{name} was not complete after {limit_s:.0f} s")


async def remove(api: HttpApi, name: str) -> None:
    await api.delete(TRAINJOB, "default", name)
    while True:
        try:
            await api.get(TRAINJOB, "default", name)
        except NotFound:
            return
        await asyncio.sleep(0.02)
