"""Following a job to its end: its states, its merged logs, and why it failed."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from trainwright.api.kinds import EVENT_V1, JOBSET, POD, TRAINJOB
from trainwright.api.wellknown import JOBSET_NAME_LABEL
from trainwright.base.errors import Gone, NotFound, Timeout, Unreachable
from trainwright.base.objects import dig
from trainwright.cli.causes import read_causes
from trainwright.cli.exits import Exit
from trainwright.cli.jobs import JobView, read_job
from trainwright.cli.logs import Line, LogFollower, RankFilter
from trainwright.cli.printing import RANK_COLOURS, render_duration
from trainwright.machinery.api import WatchType

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rich.console import Console

    from trainwright.api.kinds import Kind
    from trainwright.machinery.client import HttpApi

ENDED = ("Complete", "Failed")
LOG_DRAIN_S = 10.0
REFRESH_S = 0.1
"""Changes that come closer together than this are read once."""
RECONNECT_S = 0.5


async def watch_states(api: HttpApi, namespace: str, name: str) -> AsyncIterator[JobView]:
    """The job after each change of it, its JobSet or its Pods, and each warning; ends with the job.

    Raises:
        NotFound: there is no such job at the start.
    """
    view = await read_job(api, namespace, name)
    changed = asyncio.Event()
    selectors = ((TRAINJOB, f"metadata.name={name}", ""), (JOBSET, f"metadata.name={name}", ""),
                 (POD, "", f"{JOBSET_NAME_LABEL}={name}"),
                 (EVENT_V1, "type=Warning", ""))  # fmt: skip
    watchers = [
        asyncio.create_task(_notice(api, kind, namespace, fields, labels, changed))
        for kind, fields, labels in selectors
    ]
    try:
        while True:
            yield view
            await changed.wait()
            await asyncio.sleep(REFRESH_S)
            changed.clear()
            try:
                view = await read_job(api, namespace, name)
            except Unreachable:
                await asyncio.sleep(RECONNECT_S)
                changed.set()
    finally:
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)


async def _notice(
    api: HttpApi, kind: Kind, namespace: str, fields: str, labels: str, changed: asyncio.Event
) -> None:
    while True:
        try:
            page = await api.list(kind, namespace, field_selector=fields, label_selector=labels)
            changed.set()
            async for event in api.watch(
                kind,
                namespace,
                resource_version=page.resource_version,
                field_selector=fields,
                label_selector=labels,
            ):
                if event.type is not WatchType.BOOKMARK:
                    changed.set()
        except (Gone, Unreachable):
            await asyncio.sleep(RECONNECT_S)


class JobFollower:
    """Prints a job's states and logs as they come."""

    def __init__(
        self, api: HttpApi, console: Console, *, ranks: RankFilter, prefixes: bool = True
    ) -> None:
        self._api = api
        self._console = console
        self._ranks = ranks
        self._prefixes = prefixes
        self._said = ("", "")
        self._colours: dict[str, str] = {}
        self._started = time.monotonic()

    async def follow(self, namespace: str, name: str) -> Exit:
        """Follow the job until it has ended; the exit code mirrors it."""
        first = await read_job(self._api, namespace, name)
        nodes = int(first.nodes.partition("/")[2] or 1)
        logs = LogFollower(self._api, namespace, name, self._ranks, self._print, nodes=nodes)
        reader = asyncio.create_task(logs.run(), name="logs")
        try:
            async for view in watch_states(self._api, namespace, name):
                self._say_state(view)
                if view.state.name in ENDED:
                    await logs.catch_up()
                    await logs.drain(LOG_DRAIN_S)
                    return await self._say_end(view)
                if view.state.name == "Suspended" and dig(view.trainjob, "spec", "suspend"):
                    return Exit.STOPPED
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
            await logs.close()
        return Exit.STOPPED

    def _print(self, line: Line) -> None:
        if not self._prefixes:
            self._console.print(line.text)
            return
        colour = self._colours.setdefault(
            line.prefix, RANK_COLOURS[len(self._colours) % len(RANK_COLOURS)]
        )
        self._console.print(f"{line.prefix} |", style=colour, end=" ")
        self._console.print(line.text)

    def _say_state(self, view: JobView) -> None:
        state = view.state
        text = f"{state.name}" + (f" {view.nodes} nodes" if state.name == "Running" else "")
        if view.progress:
            text += f", {view.progress}"
        said = (text, view.why if state.name not in ENDED else "")
        if said == self._said or state.name in ENDED:
            return
        self._said = said
        self._console.print("  ".join(part for part in ("*", *said) if part), style="dim")

    async def _say_end(self, view: JobView) -> Exit:
        took = render_duration(round(time.monotonic() - self._started))
        if view.state.name == "Complete":
            self._console.print(f"* Complete after {took}", style="green")
            return Exit.OK
        self._console.print(f"* Failed after {took}: {view.why}", style="red")
        for sentence in await read_causes(self._api, view):
            self._console.print(f"  {sentence}", style="red")
        return Exit.JOB_FAILED


async def wait_for(
    api: HttpApi, namespace: str, name: str, wanted: str, timeout_s: float | None
) -> tuple[Exit, str]:
    """Wait until the job is in the state `wanted` (lower case), or cannot be any more.

    Returns:
        The exit code and one sentence.

    Raises:
        NotFound: there is no such job, or it went away.
        Timeout: it was in no such state in time.
    """
    try:
        async with asyncio.timeout(timeout_s):
            async for view in watch_states(api, namespace, name):
                state = view.state.name.lower()
                if state == wanted:
                    return Exit.OK, f"TrainJob {namespace}/{name} is {view.state.name}"
                if view.state.name in ENDED:
                    code = Exit.JOB_FAILED if state == "failed" or wanted == "failed" else Exit.OK
                    return code, (f"TrainJob {namespace}/{name} is {view.state.name}: {view.why}")
    except TimeoutError:
        raise Timeout(
            f"TrainJob {namespace}/{name} is not {wanted} after {timeout_s:g} s; "
            f"`trainwright get {name}` shows how it is"
        ) from None
    raise NotFound(f"TrainJob {namespace}/{name} is gone")
