"""A real embedded server for tests: HTTPS on a free port, a store in a temporary folder."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp

from trainwright.machinery.clock import SystemClock
from trainwright.server.app import App
from trainwright.server.auth import Authenticator
from trainwright.server.certificates import ensure_certificates, write_kubeconfig
from trainwright.server.listen import serve_https
from trainwright.server.registry import Registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from trainwright.server.podexec import ExecProvider
    from trainwright.server.podlogs import LogProvider

TOKEN = "test-token-of-no-installation"
KUBECTL = "/usr/bin/kubectl"
COMMAND_TIMEOUT_S = 60


@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class TestServer:
    """A running server, and how clients reach it."""

    __test__ = False

    url: str
    folder: Path
    kubeconfig: Path
    registry: Registry
    authenticator: Authenticator
    http: aiohttp.ClientSession
    """Sends the admin's token with each request."""
    stop: Callable[[], Awaitable[None]]
    """Stops the HTTPS server; may be called once more at the end."""

    async def kubectl(self, *arguments: str, stdin: str = "", **environment: str) -> Finished:
        """Run kubectl; the test fails when it exits with another code than 0."""
        done = await self.try_kubectl(*arguments, stdin=stdin, **environment)
        assert done.code == 0, f"kubectl {arguments}: {done.err}{done.out}"
        return done

    async def try_kubectl(self, *arguments: str, stdin: str = "", **environment: str) -> Finished:
        """Run kubectl against this server."""
        return await self.run(KUBECTL, *arguments, stdin=stdin, **environment)

    async def run(self, *command: str, stdin: str = "", **environment: str) -> Finished:
        """Run a client with this server's kubeconfig and a home folder of its own."""
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.folder,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.folder),
                "KUBECONFIG": str(self.kubeconfig),
                **environment,
            },
        )
        try:
            out, err = await asyncio.wait_for(
                process.communicate(stdin.encode()), COMMAND_TIMEOUT_S
            )
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise
        return Finished(process.returncode or 0, out.decode(), err.decode())

    async def get_json(self, path: str, **headers: str) -> Any:
        """GET that must succeed."""
        async with self.http.get(path, headers=headers) as response:
            assert response.status == 200, await response.text()
            return await response.json(content_type=None)


@contextlib.asynccontextmanager
async def running_server(
    folder: Path, *, logs: LogProvider | None = None, execs: ExecProvider | None = None
) -> AsyncIterator[TestServer]:
    """Start a server in `folder`; everything is closed at the end."""
    clock = SystemClock()
    registry = await Registry.open(folder / "store", clock)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(registry.close)
        certs = ensure_certificates(folder / "certs", clock.now())
        authenticator = Authenticator(TOKEN, b"signing-key", clock)
        app = App(registry, authenticator, clock, logs=logs, execs=execs)
        server = await serve_https(app, certs=certs)
        stack.push_async_callback(server.stop)
        kubeconfig = folder / "kubeconfig"
        write_kubeconfig(kubeconfig, server.url, certs.ca_pem, TOKEN)
        context = ssl.create_default_context(cafile=str(certs.ca_file))
        session = aiohttp.ClientSession(
            server.url,
            headers={"Authorization": f"Bearer {TOKEN}"},
            connector=aiohttp.TCPConnector(ssl=context),
            timeout=aiohttp.ClientTimeout(total=60),
        )
        stack.push_async_callback(session.close)
        yield TestServer(
            server.url, folder, kubeconfig, registry, authenticator, session, server.stop
        )
