from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.component.node.memory_api import MemoryApi, MemoryLister
from trainwright.api.kinds import POD
from trainwright.base.errors import LocalRunError
from trainwright.base.objects import Object, dig
from trainwright.machinery.clock import SystemClock
from trainwright.node.agent import NodeAgent
from trainwright.node.host import Host
from trainwright.node.settings import NodeSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

DEADLINE_S = 60.0


class Laptop:
    """A node with its API server, and how a test waits for what it expects."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.api = MemoryApi()
        self.agent: NodeAgent
        self._task: asyncio.Task[None] | None = None

    async def start(self, **settings: Any) -> None:
        chosen = NodeSettings(home=self.home, backoff_base_s=0.05, config_retry_s=0.05, **settings)
        self.agent = NodeAgent(self.api, MemoryLister(self.api), chosen, SystemClock())
        self._task = asyncio.create_task(self.agent.run())
        await self.wait_for(lambda: ("Node", "", "laptop") in self.api.objects)

    async def stop(self, *, kill: bool) -> None:
        if self._task is not None:
            await self.agent.stop(kill=kill)
            await self._task
            self._task = None

    async def wait_for(self, condition: Callable[[], Any]) -> Any:
        async with asyncio.timeout(DEADLINE_S):
            while not (value := condition()):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return value

    async def submit(self, pod: Object) -> Object:
        return await self.api.create(POD, pod, field_manager="test")

    def pod(self, name: str = "pod") -> Object:
        return self.api.objects.get(("Pod", "default", name), {})

    def phase(self, name: str = "pod") -> str:
        return str(dig(self.pod(name), "status", "phase", default=""))

    def container(self, name: str = "main", pod: str = "pod") -> Object:
        status = self.pod(pod).get("status", {})
        rows = status.get("containerStatuses", []) + status.get("initContainerStatuses", [])
        return next((row for row in rows if row["name"] == name), {})

    def reasons(self) -> list[str]:
        return [event["reason"] for event in self.api.events]

    async def wait_phase(self, *phases: str, name: str = "pod") -> Object:
        await self.wait_for(lambda: self.phase(name) in phases)
        return self.pod(name)

    def text(
        self, pod: str = "pod", container: str = "main", number: int = 0, attempt: int = 0
    ) -> str:
        from trainwright.node.logs import read_tail

        folder = self.home / "pods" / self.pod(pod)["metadata"]["uid"] / "containers"
        return read_tail(folder / container / f"{attempt}.{number}" / "log", 10000, 10**6)


@pytest.fixture
async def laptop(tmp_path: Path) -> AsyncIterator[Laptop]:
    machine = Laptop(tmp_path / "home")
    machine.home.mkdir(mode=0o700)
    yield machine
    with contextlib.suppress(AttributeError):
        await machine.stop(kill=True)


@pytest.fixture(params=["none", "auto", "namespace"])
def isolation(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    chosen = str(request.param)
    if chosen == "namespace":
        require_networks(tmp_path / "probe")
    return chosen


def require_networks(home: Path) -> None:
    """Skip where this system does not allow jobs a network of their own."""
    home.mkdir()
    try:
        Host(MemoryApi(), NodeSettings(home=home, isolation="namespace"), SystemClock())
    except LocalRunError as error:
        pytest.skip(str(error))
