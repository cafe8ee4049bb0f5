"""One plane: API server, controllers and node in one event loop, started and stopped in order."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from trainwright.controllers.catalog import Surroundings
from trainwright.controllers.reconciler import ControllerLoop
from trainwright.core.trainjob.settings import (
    DEFAULT_SETTINGS,
    StatusServer,
    TrainJobSettings,
)
from trainwright.machinery.events import EventRecorder
from trainwright.machinery.kubeconfig import read_kubeconfig
from trainwright.node.agent import NodeAgent
from trainwright.node.settings import NodeSettings
from trainwright.plane.bootstrap import ensure_first_objects
from trainwright.plane.controllers import (
    CONTROLLERS,
    choose_admission,
    choose_controllers,
)
from trainwright.plane.front import Front
from trainwright.plane.room import retry_when_there_is_room
from trainwright.plane.secrets import ensure_secret
from trainwright.plane.tokens import IssuedTokens, build_token_issuer
from trainwright.progress.app import ProgressApp
from trainwright.server.app import App
from trainwright.server.auth import Authenticator
from trainwright.server.certificates import ensure_certificates, write_kubeconfig
from trainwright.server.inprocess import InProcessApi, StoreLister
from trainwright.server.listen import serve_https
from trainwright.server.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from trainwright.base.times import Clock
    from trainwright.plane.home import Home
    from trainwright.server.certificates import Certificates
    from trainwright.server.listen import RunningServer

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneSettings:
    """How a plane is started."""

    port: int = 0
    """Port on 127.0.0.1; 0 takes the one of the last start when it is free, else any."""
    controllers: str = "all"
    """`all`, or names with commas; `-name` leaves one out."""
    node: bool = True
    """Whether Pods run here."""
    isolation: str = "auto"
    """See `NodeSettings.isolation`."""
    progress: bool = True
    """Feature gate TrainJobStatus: Pods may report their progress."""


def find_last_port(home: Home) -> int:
    """The port of the last start, which the home's kubeconfig tells; 0 when it tells none."""
    try:
        return urlsplit(read_kubeconfig(home.kubeconfig).server).port or 0
    except ValueError:  # no kubeconfig, or one without a port that can be read
        return 0


class Plane:
    """A plane in this process. `start`, then `stop`."""

    def __init__(self, home: Home, settings: PlaneSettings, clock: Clock) -> None:
        self._home = home
        self._settings = settings
        self._clock = clock
        self._tasks: list[asyncio.Task[None]] = []
        self._loops: Sequence[ControllerLoop] = ()
        self._node: NodeAgent | None = None
        self._trainjob_settings = DEFAULT_SETTINGS
        self.api: InProcessApi
        self.lister: StoreLister
        self._registry: Registry
        self._server: RunningServer

    @property
    def url(self) -> str:
        """`https://127.0.0.1:port`."""
        return self._server.url

    @property
    def isolation(self) -> str:
        """What separates Pods from the machine: `namespace`, `mounts` or `none`."""
        return self._node.isolation if self._node else "none"

    async def start(self) -> None:
        """Bring everything up, lowest layer first; returns when requests are answered.

        Raises:
            LocalRunError: the folder is in use, or cannot be used.
            OSError: the port is taken.
        """
        home = self._home
        home.ensure()
        chosen = choose_controllers(self._settings.controllers)
        self._registry = await Registry.open(
            home.store, self._clock, admission=choose_admission(chosen)
        )
        try:
            await self._start_above_the_store()
        except BaseException:
            await self._registry.close()
            raise

    async def _start_above_the_store(self) -> None:
        home = self._home
        self.api = InProcessApi(self._registry)
        self.lister = StoreLister(self._registry)
        certificates = ensure_certificates(home.certificates, self._clock.now())
        token = ensure_secret(home.certificates / "token")
        signing_key = ensure_secret(home.certificates / "signing.key").encode()
        authenticator = Authenticator(token, signing_key, self._clock)
        self._loops = self._build_loops(certificates.ca_pem.decode())
        if self._settings.node:
            settings = NodeSettings(
                home=home.folder,
                isolation=self._settings.isolation,
                issue_token=build_token_issuer(self.api, authenticator, self._clock),
            )
            self._node = NodeAgent(self.api, self.lister, settings, self._clock)
        app = App(
            self._registry,
            authenticator,
            self._clock,
            logs=self._node.logs if self._node else None,
            execs=self._node,
        )
        if self._settings.progress:
            progress = ProgressApp(self.api, IssuedTokens(authenticator), self._clock)
            self._server = await self._serve(Front(app, progress), certificates)
            self._trainjob_settings = TrainJobSettings(
                status_server=StatusServer(url=self.url, ca_pem=certificates.ca_pem.decode())
            )
            self._run(progress.run())
        else:
            self._server = await self._serve(app, certificates)
        await ensure_first_objects(self.api)
        for loop in self._loops:
            self._run(loop.run())
            self._registry.on_kinds_changed(loop.follow)
        retry_when_there_is_room(self.lister, [loop.queue for loop in self._loops])
        if self._node is not None:
            self._run(self._node.run())
        write_kubeconfig(home.kubeconfig, self.url, certificates.ca_pem, token)

    async def _serve(self, app: App | Front, certificates: Certificates) -> RunningServer:
        """Listen on the port that is asked for; else on that of the last start, else on any.

        Copies of a kubeconfig stay valid as long as the port does.
        """
        wanted = self._settings.port
        port = wanted or find_last_port(self._home)
        try:
            return await serve_https(app, port=port, certs=certificates)
        except OSError:
            if wanted or not port:
                raise
            logger.info("port %d of the last start is taken; another one is chosen", port)
        return await serve_https(app, port=0, certs=certificates)

    async def stop(self) -> None:
        """End everything, highest layer first. Running Pods are ended too."""
        await self._server.stop()
        for loop in self._loops:
            loop.close()
        if self._node is not None:
            await self._node.stop(kill=True)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._registry.close()

    async def wait_failed(self) -> None:
        """Return when a part of the plane ended by itself, which none should."""
        await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in self._tasks:
            if task.done() and (error := task.exception()):
                logger.error("a part of the plane failed", exc_info=error)

    def _build_loops(self, root_ca: str) -> Sequence[ControllerLoop]:
        events = EventRecorder(
            self.api,
            self._clock,
            instance=socket.gethostname(),
            new_suffix=lambda: secrets.token_hex(8),
        )
        around = Surroundings(
            api=self.api,
            lister=self.lister,
            clock=self._clock,
            kinds=self._registry.stored_kinds,
            root_ca=root_ca,
            trainjob_settings=lambda: self._trainjob_settings,
        )
        return [
            ControllerLoop(
                entry.build(around),
                api=self.api,
                lister=self.lister,
                clock=self._clock,
                events=events,
                workers=entry.workers,
            )
            for entry in map(
                CONTROLLERS.__getitem__, choose_controllers(self._settings.controllers)
            )
        ]

    def _run(self, work: Coroutine[None, None, None]) -> None:
        self._tasks.append(asyncio.create_task(work))
