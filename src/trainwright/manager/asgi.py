"""ASGI apps as parts of a manager: TLS with a certificate that may change, an orderly end."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from trainwright.base.errors import LocalRunError
from trainwright.machinery.asgi_server import bind_socket, build_server

if TYPE_CHECKING:
    import ssl

logger = logging.getLogger(__name__)

KEEP_ALIVE_S = 120


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
        try:
            listener = bind_socket(self._host, self._port)
        except OSError as error:
            raise LocalRunError(
                f"{self.name}: {self._host}:{self._port} cannot be listened on: {error.strerror}; "
                "choose another port"
            ) from error
        server = build_server(self._app, self._tls, keep_alive_s=KEEP_ALIVE_S)
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
