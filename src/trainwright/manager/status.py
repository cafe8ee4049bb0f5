"""The status part: trainings report their progress, on every replica and without the Lease."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from trainwright.core.configuration.settings import TRAINJOB_STATUS_GATE
from trainwright.core.progress.desk import Pace
from trainwright.manager.asgi import AsgiEndpoint
from trainwright.manager.tls import ServingCertificate, build_server_context
from trainwright.progress.app import ProgressApp
from trainwright.progress.reviews import ReviewedTokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.manager.parts import Context
    from trainwright.manager.runnable import Runnable

logger = logging.getLogger(__name__)


def build_status(context: Context) -> Sequence[Runnable]:
    """The parts of `--serve status`; none while the feature gate is off."""
    settings, configuration = context.settings, context.settings.configuration
    if not configuration.gates[TRAINJOB_STATUS_GATE]:
        logger.info("the feature gate %s is off: nobody reports progress", TRAINJOB_STATUS_GATE)
        return ()
    tls = build_server_context(configuration.tls)
    service = configuration.certificates.service_name
    names = (f"{service}.{settings.own_namespace}.svc", "localhost")
    pace = Pace(writes_per_second=configuration.status_server.qps or Pace().writes_per_second)
    app = ProgressApp(context.free_api, ReviewedTokens(context.free_api), context.clock, pace=pace)
    port = configuration.status_server.port
    return (
        ServingCertificate(tls, settings.certificate_folder, context.metrics, names),
        AsgiEndpoint("status server", settings.status_host, port, app, tls),
        Writer(app),
    )


class Writer:
    """Writes what was posted. A `Runnable`."""

    name = "progress"
    needs_lease = False

    def __init__(self, app: ProgressApp) -> None:
        self._app = app

    async def run(self, stopping: asyncio.Event) -> None:
        """Write until told to stop, then what is left."""
        writing = asyncio.create_task(self._app.run())
        try:
            await stopping.wait()
            await self._app.close()
        finally:
            if not stopping.is_set():
                writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)

    def find_unready(self) -> str:
        """Whoever posts gets an answer at once."""
        return ""
