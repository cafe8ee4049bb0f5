"""The embedded API server alone: writes, applies, lists, watch fan-out."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from benchmarks.measure import Figure, cpu_seconds, plane
from trainwright.api.kinds import CONFIG_MAP
from trainwright.machinery.api import PatchType

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from trainwright.base.objects import Object
    from trainwright.machinery.client import HttpApi

AT_ONCE = 16


async def measure(quick: bool) -> Sequence[Figure]:
    count = 500 if quick else 10_000
    figures = []
    async with plane("--no-node") as (_, record, api):

        async def timed(what: str, one: Callable[[int], Awaitable[object]]) -> None:
            cpu = cpu_seconds(record.pid)
            took = await _all(count, one)
            spent = 1000 * (cpu_seconds(record.pid) - cpu) / count
            figures.append(Figure(what, f"{count / took:,.0f} a second, {spent:.2f} ms CPU each"))

        await timed(
            "create of 1 KB objects", lambda n: api.create(CONFIG_MAP, _map(n), field_manager="b")
        )
        await timed("get", lambda n: api.get(CONFIG_MAP, "default", f"map-{n}"))
        await timed("server-side apply of a change", lambda n: _apply(api, n, "changed"))
        await timed("server-side apply of no change", lambda n: _apply(api, n, "changed"))
        figures += await _lists(api, count)
        figures.append(await _fan_out(api, count // 20))
    return figures


def _map(number: int, value: str = "new") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"map-{number}", "namespace": "default"},
        "data": {"value": value, "filler": "x" * 900},
    }


async def _apply(api: HttpApi, number: int, value: str) -> Object:
    return await api.patch(
        CONFIG_MAP,
        "default",
        f"map-{number}",
        _map(number, value),
        type=PatchType.APPLY,
        field_manager="applier",
        force=True,
    )


async def _all(count: int, one: Callable[[int], Awaitable[object]]) -> float:
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await one(number)

    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return time.perf_counter() - started


async def _lists(api: HttpApi, count: int) -> list[Figure]:
    started = time.perf_counter()
    await api.list(CONFIG_MAP, "default")
    whole = time.perf_counter() - started
    started = time.perf_counter()
    await api.list_all(CONFIG_MAP, "default")
    paged = time.perf_counter() - started
    return [
        Figure(
            f"list of {count:,} objects of 1 KB, one page (client included)",
            f"{1000 * whole:.0f} ms",
        ),
        Figure(f"list of {count:,} objects of 1 KB, pages of 500", f"{1000 * paged:.0f} ms"),
    ]


async def _fan_out(api: HttpApi, writes: int, watchers: int = 20) -> Figure:
    start = (await api.list(CONFIG_MAP, "default", limit=1)).resource_version

    async def watch() -> None:
        seen = 0
        async for _ in api.watch(CONFIG_MAP, "default", resource_version=start):
            seen += 1
            if seen >= writes:
                return

    tasks = [asyncio.create_task(watch()) for _ in range(watchers)]
    await asyncio.sleep(0.5)
    started = time.perf_counter()
    await _all(writes, lambda n: _apply(api, n, "watched"))
    await asyncio.gather(*tasks)
    took = time.perf_counter() - started
    return Figure(
        f"watch fan-out, {writes:,} changes to {watchers} watchers (clients included)",
        f"{writes * watchers / took:,.0f} deliveries a second",
    )
