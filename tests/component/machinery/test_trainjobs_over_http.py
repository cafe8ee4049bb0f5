"""The TrainJob controller as on a cluster: over HTTP, by informers, next to a plane that runs the rest."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from typing import TYPE_CHECKING

from tests.component.machinery.conftest import QUICK, WITHIN_S
from tests.support.planes import make_runtime, make_trainjob
from trainwright.api.kinds import CLUSTER_TRAINING_RUNTIME, CONFIG_MAP, JOBSET, TRAINJOB
from trainwright.base.objects import dig, is_condition_true
from trainwright.controllers.reconciler import ControllerLoop
from trainwright.controllers.trainjob import TrainJobController
from trainwright.machinery.api import DeleteOptions
from trainwright.machinery.client import HttpApi
from trainwright.machinery.clock import SystemClock
from trainwright.machinery.events import EventRecorder
from trainwright.machinery.informer import InformerSet, InformerSettings
from trainwright.machinery.kubeconfig import read_kubeconfig
from trainwright.plane.home import Home
from trainwright.plane.plane import Plane, PlaneSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object


@contextlib.asynccontextmanager
async def running_controller(api: HttpApi) -> AsyncIterator[InformerSet]:
    """The TrainJob controller over `api`."""
    clock, numbers = SystemClock(), itertools.count()
    informers = InformerSet(api, settings=InformerSettings(reading=QUICK, freeze=False))
    loop = ControllerLoop(
        TrainJobController(api=api, lister=informers, clock=clock),
        api=api,
        lister=informers,
        clock=clock,
        events=EventRecorder(api, clock, instance="test", new_suffix=lambda: f"{next(numbers):x}"),
        workers=2,
        observe_write=informers.observe_write,
    )
    loop.follow()
    tasks = [asyncio.create_task(informers.run())]
    async with asyncio.timeout(WITHIN_S):
        await informers.wait_synced()
    tasks.append(asyncio.create_task(loop.run()))
    try:
        yield informers
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def wait_for(
    api: HttpApi, kind: Kind, name: str, condition: Callable[[Object], bool]
) -> Object:
    async with asyncio.timeout(WITHIN_S):
        while True:
            for obj in await api.list_all(kind, "default"):
                if dig(obj, "metadata", "name") == name and condition(obj):
                    return obj
            await asyncio.sleep(0.05)


async def test_a_job_ends_complete(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    settings = PlaneSettings(controllers="-trainjob", isolation="none")
    plane = Plane(home, settings, SystemClock())
    await plane.start()
    try:
        async with HttpApi(read_kubeconfig(home.kubeconfig)) as api:
            await api.create(CLUSTER_TRAINING_RUNTIME, make_runtime("mine"), field_manager="test")
            job = make_trainjob("done", ["true"], runtime="mine")
            job["metadata"]["namespace"] = "default"
            await api.create(TRAINJOB, job, field_manager="test")
            async with running_controller(api) as informers:
                await wait_for(api, TRAINJOB, "done", lambda o: is_condition_true(o, "Complete"))
                seen = informers.get(CONFIG_MAP, "default", "done-runtime-snapshot")
                assert "data" not in (seen or {})
            # A new process knows nothing, and has nothing to do.
            before = await wait_for(api, JOBSET, "done", lambda _: True)
            async with running_controller(api):
                options = DeleteOptions(propagation="Background")
                waiting = make_trainjob("waiting", ["true"], runtime="mine", suspend=True)
                waiting["metadata"]["namespace"] = "default"
                await api.create(TRAINJOB, waiting, field_manager="test")
                await wait_for(api, JOBSET, "waiting", lambda o: bool(dig(o, "spec", "suspend")))
                after = await wait_for(api, JOBSET, "done", lambda _: True)
                assert before == after
                await api.delete(TRAINJOB, "default", "waiting", options)
    finally:
        await plane.stop()
