"""The webhooks of one process: certificate, listener, answers; ready once all three are there."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.api.wellknown import SYSTEM_NAMESPACE
from trainwright.base.errors import LocalRunError, TrainwrightError
from trainwright.machinery.asgi_server import QuietServer, bind_socket, build_server
from trainwright.webhooks.app import WebhookApp
from trainwright.webhooks.judgement import Judge
from trainwright.webhooks.rotation import Certificate, FileCertificate, Loaded, SecretCertificate

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from trainwright.base.times import Clock
    from trainwright.machinery.api import Api, Lister

logger = logging.getLogger(__name__)

DEFAULT_PORT = 9443
RETRY_S = 2.0
"""How soon a certificate that could not be had is tried again while there is none at all."""
PAUSE_S = 0.5
"""Least time between two looks, lest somebody who undoes our writes keeps the API server busy."""
KEEP_ALIVE_S = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookServerSettings:
    """Where webhooks listen, and where their certificate comes from."""

    host: str = ""
    """Empty: every address of the machine."""
    port: int = DEFAULT_PORT
    """0 takes a free one."""
    cert_dir: Path | None = None
    """A folder of `tls.crt` and `tls.key` that somebody else looks after. Then no Secret is touched,
    and whoever registers the configurations sees to their caBundle."""
    namespace: str = SYSTEM_NAMESPACE
    """Where the Service and the Secret are."""
    service_name: str = "kubeflow-trainer-controller-manager"
    secret_name: str = "kubeflow-trainer-webhook-cert"  # noqa: S105 - the name of one

    @property
    def dns_name(self) -> str:
        """What an API server calls the Service."""
        return f"{self.service_name}.{self.namespace}.svc"


class WebhookServer:
    """The webhooks as a part of a manager. Reviews need no Lease: every replica answers."""

    name = "webhooks"
    needs_lease = False

    def __init__(
        self,
        settings: WebhookServerSettings,
        api: Api,
        lister: Lister | None,
        clock: Clock,
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Nothing happens before `run`.

        Args:
            settings: see there.
            api: reads what rules ask for, and keeps the certificate.
            lister: runtimes are looked up here first; None reads all live.
            clock: times in patches, and the age of certificates.
            tls: versions and ciphers, without a certificate; the library's choice by default.
        """
        self._settings = settings
        self._tls = tls or ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._loaded = Loaded(self._tls)
        self._certificate = self._choose_certificate(api, clock)
        self._app = WebhookApp(Judge(api, lister, clock))
        self._has_certificate = asyncio.Event()
        self._why_no_certificate = "certificates are not ready"
        self._last_problem = ""
        self._server: QuietServer | None = None
        self.port = 0
        """The port that is listened on; 0 before."""

    def _choose_certificate(self, api: Api, clock: Clock) -> Certificate:
        settings = self._settings
        if settings.cert_dir is not None:
            return FileCertificate(settings.cert_dir, self._loaded)
        return SecretCertificate(
            api,
            clock,
            self._loaded,
            namespace=settings.namespace,
            secret=settings.secret_name,
            names=(settings.dns_name,),
        )

    def find_unready(self) -> str:
        """Why `/readyz` should not say yes; "" once a certificate is loaded and we listen."""
        if not self._loaded.is_there:
            return self._why_no_certificate
        if self._server is None or not self._server.started:
            return "the webhook server does not listen yet"
        return ""

    async def run(self, stopping: asyncio.Event) -> None:
        """Serve until `stopping` is set, then finish what runs.

        Raises:
            LocalRunError: the address cannot be listened on.
        """
        listener = _bind(self._settings.host, self._settings.port)
        self.port = listener.getsockname()[1]
        keeper = asyncio.create_task(self._keep_certificate(), name="webhooks.certificate")
        try:
            if await _first_of(self._has_certificate, stopping):
                await self._serve(listener, stopping)
        finally:
            listener.close()
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)

    async def _serve(self, listener: socket.socket, stopping: asyncio.Event) -> None:
        server = self._server = build_server(self._app, self._tls, keep_alive_s=KEEP_ALIVE_S)
        logger.info("webhooks listens on https://%s:%d", self._settings.host, self.port)
        task = asyncio.create_task(server.serve(sockets=[listener]), name="webhooks.https")
        stop = asyncio.create_task(stopping.wait(), name="webhooks.stopping")
        try:
            await asyncio.wait([task, stop], return_when=asyncio.FIRST_COMPLETED)
        finally:
            server.should_exit = True
            stop.cancel()
            await asyncio.shield(task)
            self._server = None
        if not stopping.is_set():
            raise LocalRunError("the webhook server ended by itself")

    async def _keep_certificate(self) -> None:
        while True:
            try:
                await self._certificate.renew()
                self._last_problem = ""
            except TrainwrightError as error:
                self._note_problem(str(error))
            except Exception as error:  # the outermost edge: without a keeper it would expire
                logger.exception("the serving certificate could not be looked after")
                self._note_problem(f"{type(error).__name__}: {error}")
            if self._loaded.is_there:
                self._has_certificate.set()
            await self._wait_for_next_look()

    async def _wait_for_next_look(self) -> None:
        if self._last_problem:
            await asyncio.sleep(RETRY_S)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._certificate.look_s):
                await self._certificate.wait_for_change()
        await asyncio.sleep(PAUSE_S)

    def _note_problem(self, text: str) -> None:
        """Logged when it is news."""
        if text != self._last_problem:
            logger.warning("the serving certificate: %s", text)
        self._last_problem = text
        self._why_no_certificate = f"certificates are not ready: {text}"


async def serve_webhooks(
    settings: WebhookServerSettings, api: Api, lister: Lister | None, clock: Clock
) -> None:
    """Serve webhooks until cancelled; `WebhookServer` is the same with readiness and a stop.

    Raises:
        LocalRunError: the address cannot be listened on.
    """
    await WebhookServer(settings, api, lister, clock).run(asyncio.Event())


def _bind(host: str, port: int) -> socket.socket:
    """A socket at the address that does not listen yet: nobody shall wait for a certificate."""
    try:
        return bind_socket(host, port)
    except OSError as error:
        raise LocalRunError(
            f"webhooks: {host}:{port} cannot be listened on: {error.strerror or error}; "
            "set webhook.port or webhook.host to another address"
        ) from error


async def _first_of(wanted: asyncio.Event, stopping: asyncio.Event) -> bool:
    """Wait for either; whether `wanted` came and `stopping` did not."""
    tasks = [asyncio.create_task(event.wait()) for event in (wanted, stopping)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return not stopping.is_set()
