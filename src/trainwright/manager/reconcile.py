"""The reconciling part: caches on every replica, controllers where the Lease is."""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import TYPE_CHECKING

from trainwright.controllers.catalog import CLUSTER_CONTROLLERS, Surroundings
from trainwright.controllers.reconciler import ControllerLoop
from trainwright.core.configuration.settings import TRAINJOB_STATUS_GATE
from trainwright.core.trainjob.settings import DEFAULT_SETTINGS, StatusServer, TrainJobSettings
from trainwright.machinery.events import EventRecorder
from trainwright.machinery.informer import InformerSet
from trainwright.machinery.metrics import MeasuredQueue
from trainwright.manager.jobs import JobMetrics

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from trainwright.manager.parts import Context
    from trainwright.manager.runnable import Runnable

logger = logging.getLogger(__name__)


def build_reconciling(context: Context) -> Sequence[Runnable]:
    """The parts of `--serve reconcile`."""
    lister = InformerSet(context.api, context.settings.namespaces)
    loops = build_loops(context, lister)
    JobMetrics(context.metrics, context.clock, lambda: context.fence.left_s > 0).follow(lister)
    caches = Caches(context, lister)
    return caches, Controllers(loops, caches)


def build_loops(context: Context, lister: InformerSet) -> Sequence[ControllerLoop]:
    """A loop for each controller, subscribed already, so that keys wait when the Lease comes."""
    events = EventRecorder(
        context.api,
        context.clock,
        instance=context.settings.identity,
        new_suffix=lambda: secrets.token_hex(8),
    )
    around = Surroundings(
        api=context.api,
        lister=lister,
        clock=context.clock,
        kinds=lambda: tuple(CLUSTER_CONTROLLERS),
        root_ca="",
        trainjob_settings=build_trainjob_settings(context),
    )
    loops = []
    for kind, entry in CLUSTER_CONTROLLERS.items():
        name = f"{kind.singular}_controller"
        workers = context.settings.configuration.concurrency.get(kind.qualified_kind, entry.workers)
        context.metrics.max_workers.labels(name).set(workers)
        loop = ControllerLoop(
            entry.build(around),
            api=context.api,
            lister=lister,
            clock=context.clock,
            events=events,
            workers=workers,
            observe_write=lister.observe_write,
            queue=MeasuredQueue(context.clock, context.metrics, name),
            on_panic=context.metrics.panics.labels(name).inc,
        )
        loop.follow()
        loops.append(loop)
    return loops


def build_trainjob_settings(context: Context) -> Callable[[], TrainJobSettings]:
    """What the TrainJob controller is told, as of now: the authority's certificate may come later."""
    settings = context.settings
    configuration = settings.configuration
    if not configuration.gates[TRAINJOB_STATUS_GATE]:
        return lambda: DEFAULT_SETTINGS
    host = f"{configuration.certificates.service_name}.{settings.own_namespace}.svc"
    url = f"https://{host}:{configuration.status_server.port}"
    authority = settings.certificate_folder / "ca.crt"

    def read() -> TrainJobSettings:
        try:
            pem = authority.read_text()
        except OSError:
            pem = ""
        return TrainJobSettings(status_server=StatusServer(url=url, ca_pem=pem))

    return read


class Caches:
    """Keeps the informers true, on standbys too. A `Runnable`."""

    name = "caches"
    needs_lease = False

    def __init__(self, context: Context, lister: InformerSet) -> None:
        self._served = context.served
        self._lister = lister
        self.synced = asyncio.Event()

    async def run(self, stopping: asyncio.Event) -> None:
        """List and watch once every required kind is served."""
        work = asyncio.create_task(self._keep(), name="informers")
        stop = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                await work
        finally:
            for task in (work, stop):
                task.cancel()
            await asyncio.gather(work, stop, return_exceptions=True)

    def find_unready(self) -> str:
        """Always ready: webhooks must not depend on a cache."""
        return ""

    async def _keep(self) -> None:
        await self._served.complete.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._lister.run())
            group.create_task(self._tell_synced())

    async def _tell_synced(self) -> None:
        await self._lister.wait_synced()
        logger.info("caches are in step with the API server")
        self.synced.set()


class Controllers:
    """Reconciles. A `Runnable`."""

    name = "controllers"
    needs_lease = True

    def __init__(self, loops: Sequence[ControllerLoop], caches: Caches) -> None:
        self._loops = loops
        self._caches = caches

    async def run(self, stopping: asyncio.Event) -> None:
        """Reconcile as soon as the caches are in step; end after the keys in work."""
        async with asyncio.TaskGroup() as group:
            stop = group.create_task(self._close(stopping))
            await _first(stop, self._caches.synced.wait())
            if not stop.done():
                logger.info("reconciling")
                for loop in self._loops:
                    group.create_task(loop.run())

    def find_unready(self) -> str:
        """A standby is as ready as the leader."""
        return ""

    async def _close(self, stopping: asyncio.Event) -> None:
        await stopping.wait()
        for loop in self._loops:
            loop.close()


async def _first(stop: asyncio.Task[None], wait: Coroutine[Any, Any, object]) -> None:
    """Return when either is done; the wait is given up then."""
    waiting = asyncio.ensure_future(wait)
    try:
        await asyncio.wait({stop, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
