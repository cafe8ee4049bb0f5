"""ASGI apps over TLS inside a running event loop, without signal handlers of the server's own."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Any

import uvicorn

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

STOP_S = 5


class QuietServer(uvicorn.Server):
    """A server that leaves the process' signals to whoever owns the loop."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Change nothing."""
        yield


def build_server(app: Any, tls: ssl.SSLContext, *, keep_alive_s: int) -> QuietServer:
    """A server for plain requests; the certificate may be loaded into `tls` later, or anew."""
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=keep_alive_s,
        timeout_graceful_shutdown=STOP_S,
    )
    config.load()
    # The context and not its files: a certificate that is loaded into it later holds for the
    # connections after that.
    config.ssl = tls
    return QuietServer(config)


def bind_socket(host: str, port: int) -> socket.socket:
    """A socket at an address, for a server that will listen on it.

    Args:
        host: a name or address; empty means every address, of both families where there are two.
        port: 0 takes a free one.

    Raises:
        OSError: the address is taken, or not one of this machine's.
    """
    both = not host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both or ":" in host else socket.AF_INET
    # asyncio turns Nagle's delay off only where the protocol is named; without that each answer
    # waits 40 ms between its head and its body.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if both:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.bind((host, port))
        bound.setblocking(False)
    except OSError:
        bound.close()
        raise
    return bound
