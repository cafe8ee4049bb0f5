"""One manager in this process, from its settings to its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from typing import TYPE_CHECKING

from trainwright import __version__
from trainwright.core.configuration.settings import OFF
from trainwright.machinery.client import HttpApi
from trainwright.machinery.clock import SystemClock
from trainwright.machinery.lease import LeaderElector, LeaseSettings, WriteFence, fence_writes
from trainwright.machinery.metrics import Metrics, count_requests
from trainwright.machinery.ratelimit import TokenBucket, limit_requests
from trainwright.manager.endpoints import Readers, build_metrics, build_probes
from trainwright.manager.manager import Manager
from trainwright.manager.parts import PARTS, Context
from trainwright.manager.served import ServedKinds
from trainwright.manager.tls import ServingCertificate, build_server_context

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.machinery.connection import Connection
    from trainwright.manager.runnable import Runnable
    from trainwright.manager.settings import ManagerSettings

logger = logging.getLogger(__name__)

USER_AGENT = f"trainwright-controller/{__version__}"


async def run_manager(
    connection: Connection, settings: ManagerSettings, parts: Sequence[str]
) -> None:
    """Run until SIGTERM or SIGINT.

    Raises:
        LeaseLost: another process may write now.
        TrainwrightError: a part could not start.
    """
    clock, metrics, fence = SystemClock(), Metrics(), WriteFence()
    client = settings.configuration.client
    bucket = TokenBucket(client.qps, client.burst, clock.monotonic)
    counted = count_requests(metrics, clock)
    # Last of all the fence: a request that waited for its token must not slip through.
    api = HttpApi(
        connection,
        _log_warning,
        observers=(counted, limit_requests(bucket), fence_writes(fence)),
        user_agent=USER_AGENT,
    )
    free_api = HttpApi(connection, _log_warning, observers=(counted,), user_agent=USER_AGENT)
    async with api, free_api:
        served = ServedKinds(free_api)
        context = Context(
            api=api,
            free_api=free_api,
            settings=settings,
            clock=clock,
            metrics=metrics,
            fence=fence,
            served=served,
        )
        runnables: list[Runnable] = [served]
        for part in parts:
            runnables += PARTS[part](context)
        runnables += build_endpoints(context, runnables)
        needs_lease = any(part.needs_lease for part in runnables)
        manager = Manager(
            runnables,
            fence=fence,
            metrics=metrics,
            elector=build_elector(context) if needs_lease else None,
            lease=settings.configuration.leader_election.name,
        )
        await manager.run(_catch_signals())


def build_endpoints(context: Context, runnables: Sequence[Runnable]) -> Sequence[Runnable]:
    """Probes and metrics, as far as they are not turned off."""
    configuration, settings = context.settings.configuration, context.settings
    found: list[Runnable] = []
    if configuration.health.bind_address != OFF:
        found.append(build_probes(configuration.health, runnables))
    if configuration.metrics.bind_address == OFF:
        return found
    tls = None
    if configuration.metrics.secure_serving:
        tls = build_server_context(configuration.tls)
        service = configuration.certificates.service_name
        names = (f"{service}.{settings.own_namespace}.svc", "localhost")
        found.append(ServingCertificate(tls, settings.certificate_folder, context.metrics, names))
    readers = Readers(context.free_api, context.clock) if configuration.metrics.auth else None
    found.append(build_metrics(configuration.metrics.bind_address, context.metrics, tls, readers))
    return found


def build_elector(context: Context) -> LeaderElector | None:
    """The elector; None when the configuration wants none."""
    election = context.settings.configuration.leader_election
    if not election.enabled:
        logger.warning(
            "leader election is off (leaderElection.leaderElect): run one replica only, and no "
            "other controller of TrainJobs beside it"
        )
        return None
    return LeaderElector(
        context.free_api,
        LeaseSettings(
            namespace=election.namespace or context.settings.own_namespace,
            name=election.name,
            identity=context.settings.identity,
            duration_s=election.lease_duration_s,
            renew_deadline_s=election.renew_deadline_s,
            retry_period_s=election.retry_period_s,
        ),
        context.clock,
        context.fence,
    )


def _catch_signals() -> asyncio.Event:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # where there are no such signals
            loop.add_signal_handler(number, stopping.set)
    return stopping


def _log_warning(text: str) -> None:
    logger.warning("the API server warns: %s", text)
