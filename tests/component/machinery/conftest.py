"""Informers over HTTP against a server of ours, with a gate between them that can be cut or frozen."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.serving import running_server
from trainwright.machinery.client import HttpApi
from trainwright.machinery.informer import InformerSet, InformerSettings
from trainwright.machinery.kubeconfig import read_kubeconfig
from trainwright.machinery.reflector import ReflectorSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from tests.serving import TestServer

WITHIN_S = 60
QUICK = ReflectorSettings(
    retry_base_s=0.01, retry_cap_s=0.1, relist_jitter_s=0.01, silence_s=5.0, list_silence_s=10.0
)


async def eventually(condition: Callable[[], Any]) -> Any:
    """What `condition` returns once it is true."""
    async with asyncio.timeout(WITHIN_S):
        while not (found := condition()):  # noqa: ASYNC110 - conditions here have no event
            await asyncio.sleep(0.01)
    return found


@dataclass
class Gate:
    """A TCP proxy: passes bytes on until it is told not to."""

    target: int
    port: int = 0
    open: asyncio.Event = field(default_factory=asyncio.Event)
    """While it is clear, bytes are kept back and connections stay: half-open, as after a crash."""
    connections: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def cut(self) -> None:
        """End every connection in the middle of whatever it is doing."""
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """End every connection and wait until each is gone."""
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for _ in range(5):
            await asyncio.sleep(0)  # sockets are closed a turn after their transports

    def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        work = asyncio.create_task(self._pass_on(reader, writer))
        self._tasks.add(work)

        def end(_: object) -> None:
            self._tasks.discard(work)
            writer.transport.abort()

        work.add_done_callback(end)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            return
        copies = [
            asyncio.create_task(self._copy(reader, far_writer)),
            asyncio.create_task(self._copy(far_reader, writer)),
        ]
        try:
            await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for copy in copies:
                copy.cancel()
            far_writer.transport.abort()
            await asyncio.gather(*copies, return_exceptions=True)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await self.open.wait()
            writer.write(data)
            await writer.drain()


@dataclass
class Bench:
    """A server, a client of it, and informers that reach it through the gate."""

    server: TestServer
    api: HttpApi
    gated: HttpApi
    gate: Gate
    _stack: contextlib.AsyncExitStack

    async def start(
        self,
        *kinds: Any,
        namespaces: Sequence[str] = (),
        reading: ReflectorSettings = QUICK,
        api: HttpApi | None = None,
        **settings: Any,
    ) -> InformerSet:
        """Informers of `kinds` that have synced and are ended with the test."""
        chosen = InformerSettings(reading=reading, freeze=False, **settings)
        informers = InformerSet(api or self.gated, namespaces, settings=chosen)
        for kind in kinds:
            informers.informer(kind)
        await self.run(informers)
        async with asyncio.timeout(WITHIN_S):
            await informers.wait_synced()
        return informers

    async def reach(self, server: TestServer) -> HttpApi:
        """A client of another server."""
        connection = read_kubeconfig(server.kubeconfig)
        return await self._stack.enter_async_context(HttpApi(connection))

    async def run(self, informers: InformerSet) -> None:
        task = asyncio.create_task(informers.run())
        self._stack.push_async_callback(_end, task)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


@contextlib.asynccontextmanager
async def running_bench(folder: Path) -> AsyncIterator[Bench]:
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(running_server(folder))
        connection = read_kubeconfig(server.kubeconfig)
        api = await stack.enter_async_context(HttpApi(connection))
        gate = Gate(urlsplit(server.url).port or 0)
        gate.open.set()
        listening = await asyncio.start_server(gate.take, "127.0.0.1", 0)
        gate.port = listening.sockets[0].getsockname()[1]
        through = replace(connection, server=f"https://127.0.0.1:{gate.port}")
        gated = await stack.enter_async_context(HttpApi(through))
        stack.push_async_callback(gate.close)
        stack.callback(listening.close)
        yield Bench(server, api, gated, gate, stack)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with running_bench(tmp_path) as running:
        yield running
