"""ASGI apps as parts of a manager: TLS with a certificate that may change, an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from typing import TYPE_CHECKING, Any

import uvicorn

from trainwright.base.errors import LocalRunError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

logger = logging.getLogger(__name__)

STOP_S = 5
KEEP_ALIVE_S = 120
BACKLOG = 512


class AsgiEndpoint:
    """One HTTPS address with an app. A `Runnable`."""

    needs_lease = False

    def __init__(self, name: str, host: str, port: int, app: Any, tls: ssl.SSLContext) -> None:
        """An empty `host` means every address, port 0 a free one."""
        self.name = name
        self._host = host
        self._port = port
        self._app = app
        self._tls = tls
        self._listens = False

    async def run(self, stopping: asyncio.Event) -> None:
        """Answer until told to stop.

        Raises:
            LocalRunError: the address cannot be listened on.
        """
        listener = self._listen()
        server = _Server(self._build_config())
        serving = asyncio.create_task(server.serve(sockets=[listener]), name=self.name)
        self._listens = True
        logger.info("%s listens on https://%s:%d", self.name, self._host, listener.getsockname()[1])
        stop = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait({serving, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            server.should_exit = True
            await serving
            self._listens = False

    def find_unready(self) -> str:
        """Ready while it listens."""
        return "" if self._listens else "does not listen yet"

    def _listen(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        # asyncio turns Nagle's delay off only where the protocol is named.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((self._host, self._port))
            listener.listen(BACKLOG)
            listener.setblocking(False)
        except OSError as error:
            listener.close()
            raise LocalRunError(
                f"{self.name}: {self._host}:{self._port} cannot be listened on: {error.strerror}; "
                "choose another port"
            ) from error
        return listener

    def _build_config(self) -> uvicorn.Config:
        config = uvicorn.Config(
            self._app,
            http="httptools",
            ws="none",
            loop="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=STOP_S,
        )
        config.load()
        config.ssl = self._tls
        return config


class _Server(uvicorn.Server):
    """A server that leaves the process' signals to whoever owns the loop."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
