"""Merging the logs of a job's Pods into one stream of prefixed lines."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainwright.api.kinds import POD
from trainwright.api.wellknown import JOBSET_NAME_LABEL
from trainwright.base.errors import (
    ApiError,
    BadRequest,
    Gone,
    NotFound,
    TrainwrightError,
    Unreachable,
)
from trainwright.base.objects import Object, dig, name_of, namespace_of, uid_of
from trainwright.cli.exits import Exit, fail
from trainwright.cli.jobs import is_trainer, prefix_of, rank_of
from trainwright.machinery.api import WatchType

if TYPE_CHECKING:
    from trainwright.cli.jobs import JobView
    from trainwright.machinery.client import HttpApi

SHOW_ALL_UP_TO = 8
RECONNECT_S = 0.5


class RanksError(TrainwrightError, ValueError):
    """A `--ranks` that selects nothing we know."""


@dataclass(frozen=True, slots=True)
class RankFilter:
    """Which Pods' logs are shown."""

    numbers: frozenset[int] | None = None
    """Only these indexes; None does not restrict."""
    only_failed: bool = False
    automatic: bool = False
    """Everything up to 8 nodes, above that node 0."""

    def admits(self, pod: Object, nodes: int) -> bool:
        """Whether the Pod's log is shown, in a job of so many nodes."""
        if not is_trainer(pod):
            return not self.only_failed or dig(pod, "status", "phase") == "Failed"
        if self.only_failed:
            return bool(dig(pod, "status", "phase") == "Failed")
        if self.numbers is not None:
            return rank_of(pod) in self.numbers
        return not self.automatic or nodes <= SHOW_ALL_UP_TO or rank_of(pod) == 0


def parse_ranks(text: str) -> RankFilter:
    """Read `--ranks`.

    Raises:
        RanksError: it is neither `all`, `failed` nor a list of numbers and rising ranges.
    """
    if not text:
        return RankFilter(automatic=True)
    if text == "all":
        return RankFilter()
    if text == "failed":
        return RankFilter(only_failed=True)
    if not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", text):
        raise RanksError(
            f'--ranks "{text}": all, failed, or numbers such as 0,3 or 0-7 were wanted'
        )
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if last and int(last) < int(first):
            raise RanksError(
                f'--ranks "{text}": {part} counts down; {last}-{first} was probably wanted'
            )
        numbers.update(range(int(first), int(last or first) + 1))
    return RankFilter(numbers=frozenset(numbers))


def read_ranks(text: str) -> RankFilter:
    """`parse_ranks` for a command's option: a bad one is an error of usage."""
    try:
        return parse_ranks(text)
    except RanksError as error:
        fail(Exit.USAGE, str(error))


@dataclass(frozen=True, slots=True)
class Line:
    """One line of one container."""

    prefix: str
    text: str


Emit = Callable[[Line], None]


def main_container(pod: Object) -> str:
    """The container whose log stands for the Pod: its first."""
    return str(dig(pod, "spec", "containers", 0, "name", default=""))


async def read_lines(
    api: HttpApi,
    pod: Object,
    *,
    follow: bool = False,
    previous: bool = False,
    tail: int | None = None,
    since_s: int | None = None,
    timestamps: bool = False,
) -> AsyncIterator[Line]:
    """The lines of a Pod's main container. A broken connection is taken up where it ended."""
    prefix, seen = prefix_of(pod), 0
    query: dict[str, str] = {
        "container": main_container(pod),
        "previous": "true" if previous else "",
        "timestamps": "true" if timestamps else "",
        "sinceSeconds": str(since_s) if since_s else "",
        "tailLines": str(tail) if tail is not None else "",
        "follow": "true" if follow else "",
    }
    path = POD.path(namespace_of(pod), name_of(pod), "log")
    while True:
        skip = seen
        try:
            async for line in api.stream_lines(path, query=query):
                if skip:
                    skip -= 1
                    continue
                seen += 1
                yield Line(prefix, line.decode(errors="replace"))
        except Unreachable:
            if not follow or tail is not None or since_s:
                raise
            await asyncio.sleep(RECONNECT_S)
        else:
            return


class LogFollower:
    """Follows every Pod of a job, also those that come later, until told to stop."""

    def __init__(
        self, api: HttpApi, namespace: str, job: str, ranks: RankFilter, emit: Emit, *, nodes: int
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._job = job
        self._ranks = ranks
        self._emit = emit
        self._nodes = nodes
        self._streams: dict[tuple[str, int], asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Watch the job's Pods and follow each one's log until cancelled."""
        selector = f"{JOBSET_NAME_LABEL}={self._job}"
        while True:
            page = await self._api.list(POD, self._namespace, label_selector=selector)
            for pod in page.items:
                self._consider(pod)
            try:
                async for event in self._api.watch(
                    POD,
                    self._namespace,
                    resource_version=page.resource_version,
                    label_selector=selector,
                ):
                    if event.type in {WatchType.ADDED, WatchType.MODIFIED}:
                        self._consider(event.object)
            except (Gone, Unreachable):
                await asyncio.sleep(RECONNECT_S)

    async def drain(self, timeout_s: float) -> None:
        """Wait until the logs that are being followed have ended."""
        if self._streams:
            await asyncio.wait(self._streams.values(), timeout=timeout_s)

    async def catch_up(self) -> None:
        """Look at the Pods once more, so that one that ran in a blink is not missed."""
        page = await self._api.list(
            POD, self._namespace, label_selector=f"{JOBSET_NAME_LABEL}={self._job}"
        )
        for pod in page.items:
            self._consider(pod)

    async def close(self) -> None:
        """Stop following."""
        for task in self._streams.values():
            task.cancel()
        await asyncio.gather(*self._streams.values(), return_exceptions=True)

    def _consider(self, pod: Object) -> None:
        if not self._ranks.admits(pod, self._nodes):
            return
        container = main_container(pod)
        status = _container_status(pod, container)
        state = status.get("state") or {}
        if "running" not in state and "terminated" not in state:
            return
        key = (uid_of(pod), int(status.get("restartCount", 0)))
        if key not in self._streams:
            self._streams[key] = asyncio.create_task(self._stream(pod), name=f"log-{name_of(pod)}")

    async def _stream(self, pod: Object) -> None:
        try:
            async for line in read_lines(self._api, pod, follow=True):
                self._emit(line)
        except (NotFound, BadRequest):
            pass  # the Pod went before its log was read: nothing is left to show
        except ApiError as error:
            self._emit(Line(prefix_of(pod), f"(log not readable: {error})"))


def explain_no_log(view: JobView, ranks: RankFilter) -> str:
    """One sentence on why a job has no log to show."""
    subject = f"TrainJob {namespace_of(view.trainjob)}/{view.name}"
    if not view.pods:
        why = f" ({view.why})" if view.why else ""
        return f"{subject} has no pods, so there are no logs: it is {view.state.name}{why}"
    if ranks.only_failed:
        return f"no node of {subject} has failed"
    here = sorted({rank_of(pod) for pod in view.pods if is_trainer(pod)})
    return f"{subject} has no such node; its nodes are {', '.join(map(str, here)) or 'none'}"


def _container_status(pod: Object, container: str) -> Mapping[str, Any]:
    statuses: Sequence[Mapping[str, Any]] = dig(pod, "status", "containerStatuses", default=[])
    return next((status for status in statuses if status.get("name") == container), {})


def sort_pods(pods: Sequence[Object]) -> Sequence[Object]:
    """Pods in the order people read them: by role, then by index."""
    return sorted(
        pods, key=lambda pod: (not is_trainer(pod), prefix_of(pod).split("/")[0], rank_of(pod))
    )
