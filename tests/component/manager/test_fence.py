"""The fence of a real client: not one byte of a write leaves when the lease is over."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web

from trainwright.api.kinds import CONFIG_MAP
from trainwright.base.errors import Unreachable
from trainwright.machinery.api import PatchType
from trainwright.machinery.client import HttpApi
from trainwright.machinery.connection import Connection
from trainwright.machinery.lease import WriteFence, fence_writes
from trainwright.machinery.ratelimit import TokenBucket, limit_requests

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

OBJECT = {"metadata": {"name": "a", "namespace": "n"}, "data": {"k": "v"}}

WRITES: dict[str, Callable[[HttpApi], Awaitable[Any]]] = {
    "create": lambda api: api.create(CONFIG_MAP, OBJECT, field_manager="m"),
    "replace": lambda api: api.replace(CONFIG_MAP, OBJECT, field_manager="m"),
    "patch": lambda api: api.patch(
        CONFIG_MAP, "n", "a", {}, type=PatchType.MERGE, field_manager="m"
    ),
    "delete": lambda api: api.delete(CONFIG_MAP, "n", "a"),
}


@asynccontextmanager
async def make_client(
    *observers: aiohttp.TraceConfig,
) -> AsyncIterator[tuple[HttpApi, list[str]]]:
    """A client with these observers, and the methods that reached its server."""
    seen: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.method)
        return web.json_response({})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        connection = Connection(server=f"http://127.0.0.1:{runner.addresses[0][1]}")
        async with HttpApi(connection, observers=observers) as api:
            yield api, seen
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("verb", WRITES)
async def test_a_closed_fence_stops_writes_and_lets_reads_through(verb: str) -> None:
    fence = WriteFence()
    async with make_client(fence_writes(fence)) as (api, seen):
        await api.get(CONFIG_MAP, "n", "a")
        with pytest.raises(Unreachable, match="lease is not held"):
            await WRITES[verb](api)
        assert seen == ["GET"]
        fence.open()
        await WRITES[verb](api)
        assert len(seen) == 2


@pytest.mark.parametrize("verb", ["create", "replace", "patch"])
@pytest.mark.parametrize(
    "moment", ["on_request_start", "on_connection_create_end", "on_request_headers_sent"]
)
async def test_a_fence_that_closes_on_the_way_stops_the_write(verb: str, moment: str) -> None:
    fence = WriteFence()
    fence.open()

    async def close(*_: object) -> None:
        fence.close()

    sleeper = aiohttp.TraceConfig()
    getattr(sleeper, moment).append(close)
    async with make_client(sleeper, fence_writes(fence)) as (api, seen):
        with pytest.raises(Unreachable):
            await WRITES[verb](api)
        await api.get(CONFIG_MAP, "n", "a")
        assert seen == ["GET"]


async def test_requests_wait_for_their_tokens() -> None:
    waits: list[float] = []

    class Counting(TokenBucket):
        async def take(self) -> None:
            waits.append(self.reserve())

    bucket = Counting(1, 2, lambda: 0.0)
    async with make_client(limit_requests(bucket)) as (api, seen):
        for _ in range(4):
            await api.get(CONFIG_MAP, "n", "a")
        assert len(seen) == 4
    assert waits == [0, 0, 1, 2]
