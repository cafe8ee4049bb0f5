"""Serve an ASGI app over TLS on loopback, inside a running event loop, without signal handlers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import uvicorn

from trainwright.machinery.asgi_server import STOP_S, QuietServer, bind_socket

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trainwright.server.certificates import Certificates

MAX_HEADER_BYTES = 64 * 1024


@dataclass(slots=True)
class RunningServer:
    """A server that answers; `stop` ends it."""

    host: str
    port: int
    _server: QuietServer
    _task: asyncio.Task[None]
    _before_stop: Callable[[], Awaitable[None]] | None = None

    @property
    def url(self) -> str:
        """`https://host:port`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{host}:{self.port}"

    async def stop(self) -> None:
        """End open streams cleanly, finish what runs, close the socket."""
        if self._before_stop is not None:
            await self._before_stop()
        self._server.should_exit = True
        await self._task


async def serve_https(
    app: Any,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    certs: Certificates,
) -> RunningServer:
    """Start serving `app`; returns once connections are accepted.

    Args:
        app: an ASGI app; a coroutine method `close` is called before the server stops.
        host: a loopback address; any other is refused, for the API can run commands.
        port: 0 takes a free one.
        certs: see `ensure_certificates`.

    Raises:
        ValueError: when `host` is not a loopback address.
        OSError: when the port is taken.
    """
    require_loopback(host)
    try:
        listener = bind_socket(host, port)
    except OSError as error:
        text = f"{host}:{port} cannot be listened on: {error.strerror}; choose another port"
        raise OSError(error.errno, text) from error
    server = QuietServer(_build_config(app, certs))
    task = asyncio.create_task(server.serve(sockets=[listener]), name="server.https")
    try:
        while not server.started:
            if task.done():
                await task
                raise OSError(f"{host}:{port}: the server ended before it started")
            await asyncio.sleep(0.005)
    except BaseException:
        listener.close()
        raise
    actual_port: int = listener.getsockname()[1]
    return RunningServer(host, actual_port, server, task, getattr(app, "close", None))


def require_loopback(host: str) -> None:
    """Refuse addresses that other machines can reach.

    Raises:
        ValueError: when `host` is not a loopback address.
    """
    try:
        is_loopback = ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise ValueError(f'"{host}" is not a loopback address; use 127.0.0.1 or ::1')


def _build_config(app: Any, certs: Certificates) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="httptools",
        ws="wsproto",
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=STOP_S,
        ws_max_size=4 * 1024 * 1024,
        ws_ping_interval=None,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        ssl_certfile=str(certs.cert_file),
        ssl_keyfile=str(certs.key_file),
    )
