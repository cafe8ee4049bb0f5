"""The real command against a real embedded server, with a recording proxy where a test wants one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import yaml
from aiohttp import web

from tests.serving import TOKEN, TestServer, running_server
from tests.support.planes import make_runtime, make_trainjob

if TYPE_CHECKING:
    import signal
    from collections.abc import AsyncIterator, Callable, Iterator

TRAINWRIGHT = Path(sys.executable).with_name("trainwright")
LIMIT_S = 60.0
GROUP = "/apis/trainer.kubeflow.org/v1alpha1"
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/trainer.kubeflow.org"
ELECTION = {"leaderElect": True, "resourceNamespace": "default", "retryPeriod": "200ms"}
SHORT = ELECTION | {"leaseDuration": "4s", "renewDeadline": "3s"}
"""For tests that wait until a Lease runs out; a busy machine must not lose one by chance."""


async def wait_until(find: Callable[[], Any], what: str) -> Any:
    """The first true answer of `find`, which may be a coroutine function."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + LIMIT_S
    while loop.time() < deadline:
        found = find()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(f"{what}: not so after {LIMIT_S:.0f} s")


def make_configuration(**fields: Any) -> dict[str, Any]:
    """A configuration on free ports of this machine, with a Lease in `default`."""
    return {
        "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
        "kind": "Configuration",
        "metrics": {"bindAddress": "127.0.0.1:0", "secureServing": False},
        "health": {"healthProbeBindAddress": "127.0.0.1:0"},
        "leaderElection": ELECTION,
        **fields,
    }


@dataclass
class ManagerProcess:
    """A running `trainwright controller`."""

    process: subprocess.Popen[bytes]
    log_file: Path

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    async def wait_log(self, text: str) -> None:
        def seen() -> bool:
            assert self.process.poll() is None or text in self.log, self.log
            return text in self.log

        await wait_until(seen, text)

    async def address(self, name: str) -> str:
        """Where an endpoint listens, as the log tells."""
        await self.wait_log(f"{name} listens on")
        found = re.search(rf"{name} listens on (https?://[^\"\s]+)", self.log)
        assert found is not None
        return found[1]

    def send(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    async def wait_end(self) -> int:
        await wait_until(lambda: self.process.poll() is not None, f"ended: {self.log}")
        return int(self.process.returncode)


@dataclass
class Managers:
    """Starts managers against one server; all of them are gone after the test."""

    server: TestServer
    folder: Path
    running: list[ManagerProcess] = field(default_factory=list)

    def start(
        self, *arguments: str, kubeconfig: Path | None = None, **fields: Any
    ) -> ManagerProcess:
        number = len(self.running)
        config = self.folder / f"config-{number}.yaml"
        config.write_text(yaml.safe_dump(make_configuration(**fields)))
        log_file = self.folder / f"log-{number}"
        command = [
            *(str(TRAINWRIGHT), "controller", "--config", str(config)),
            *("--kubeconfig", str(kubeconfig or self.server.kubeconfig)),
            *("--cert-dir", str(self.folder / "certs-of-the-manager")),
            *arguments,
        ]
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )
        manager = ManagerProcess(process, log_file)
        self.running.append(manager)
        return manager

    async def create(self, path: str, obj: dict[str, Any]) -> None:
        async with self.server.http.post(path, json=obj) as response:
            assert response.status == 201, await response.text()

    async def create_runtime(self) -> None:
        await self.create(f"{GROUP}/clustertrainingruntimes", make_runtime("plain"))

    async def create_trainjob(self, name: str) -> None:
        job = make_trainjob(name, ["true"], runtime="plain")
        await self.create(f"{GROUP}/namespaces/default/trainjobs", job)

    async def find(self, path: str) -> dict[str, Any] | None:
        async with self.server.http.get(path) as response:
            found: dict[str, Any] | None = await response.json() if response.status == 200 else None
            return found

    async def holder(self) -> str:
        lease = await self.find(LEASE)
        return str(lease["spec"].get("holderIdentity") or "") if lease else ""

    async def wait_jobset(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = await wait_until(
            lambda: self.find(f"{JOBSETS}/{name}"), f"JobSet {name}"
        )
        return found


@pytest.fixture
async def managers(tmp_path: Path) -> AsyncIterator[Managers]:
    async with running_server(tmp_path) as server:
        found = Managers(server, tmp_path)
        with _ending(found):
            yield found


@contextlib.contextmanager
def _ending(managers: Managers) -> Iterator[None]:
    try:
        yield
    finally:
        for manager in managers.running:
            if manager.process.poll() is None:
                manager.process.kill()
                manager.process.wait()


@dataclass(frozen=True)
class Request:
    """A request that passed the proxy."""

    method: str
    path: str
    authorization: str
    status: int


@dataclass
class Proxy:
    """Passes everything on to a server and remembers it; `kubeconfig` leads through it."""

    kubeconfig: Path
    seen: list[Request]


@contextlib.asynccontextmanager
async def recording_proxy(server: TestServer, user: dict[str, Any]) -> AsyncIterator[Proxy]:
    """A proxy in front of `server`; its kubeconfig has this `user`."""
    seen: list[Request] = []

    async def forward(request: web.Request) -> web.StreamResponse:
        authorization = request.headers.get("Authorization", "")
        headers = {
            name: request.headers[name]
            for name in ("Accept", "Content-Type", "Authorization")
            if name in request.headers
        }
        async with server.http.request(
            request.method,
            request.path_qs,
            headers=headers,
            data=await request.read(),
            timeout=aiohttp.ClientTimeout(total=None),
        ) as answer:
            seen.append(Request(request.method, request.path, authorization, answer.status))
            response = web.StreamResponse(
                status=answer.status, headers={"Content-Type": answer.headers["Content-Type"]}
            )
            await response.prepare(request)
            with contextlib.suppress(ConnectionError, aiohttp.ClientError):
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
            return response

    app = web.Application(client_max_size=10_000_000)
    app.router.add_route("*", "/{path:.*}", forward)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        kubeconfig = server.folder / "through-the-proxy"
        kubeconfig.write_text(
            yaml.safe_dump(
                {
                    "clusters": [
                        {
                            "name": "c",
                            "cluster": {"server": f"http://127.0.0.1:{runner.addresses[0][1]}"},
                        }
                    ],
                    "users": [{"name": "u", "user": user}],
                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "x",
                }
            )
        )
        yield Proxy(kubeconfig, seen)
    finally:
        await runner.cleanup()


TOKEN_USER = {"token": TOKEN}
