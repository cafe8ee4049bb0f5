"""`trainwright controller --serve webhooks` as a process."""

from __future__ import annotations

import signal
import socket
from typing import TYPE_CHECKING

import aiohttp

from tests.component.manager.conftest import Managers, managers, wait_until
from tests.component.webhooks.clusters import calling, make_cert_dir
from tests.unit.core.trainjob.factories import make_runtime, make_trainjob
from trainwright.api import kinds

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["managers"]


def find_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


async def test_the_command_serves_webhooks_and_says_when_they_are_ready(
    managers: Managers,
    tmp_path: Path,
) -> None:
    port, certs = find_port(), tmp_path / "serving"
    manager = managers.start(
        *("--serve", "webhooks", "--webhook-host", "127.0.0.1", "--webhook-port", str(port)),
        *("--webhook-cert-dir", str(certs)),
    )
    url = await manager.address("probes")

    async def probe() -> tuple[int, str]:
        async with aiohttp.ClientSession() as http, http.get(f"{url}/readyz") as answer:
            return answer.status, await answer.text()

    async def is_ready() -> bool:
        return (await probe())[0] == 200

    code, text = await probe()
    assert code != 200
    assert "certificates are not ready" in text
    (tmp_path / "pki").mkdir()
    made, ca = make_cert_dir(tmp_path / "pki")
    made.rename(certs)
    await wait_until(is_ready, "ready")
    runtime = make_runtime(kind="ClusterTrainingRuntime")
    await managers.create("/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes", runtime)
    await manager.wait_log(f"webhooks listens on https://127.0.0.1:{port}")
    async with calling(port, ca) as caller:
        assert (await caller.write(kinds.TRAINJOB, make_trainjob())).code == 201
        refused = await caller.write(kinds.TRAINJOB, make_trainjob(trainer={"numNodes": -1}))
    assert refused.code == 403
    assert "spec.trainer.numNodes" in refused.message
    manager.send(signal.SIGTERM)
    assert await manager.wait_end() == 0
