"""`trainwright controller` as a process beside a lane, with its webhooks registered by URL."""

from __future__ import annotations

import base64
from contextlib import contextmanager
from typing import TYPE_CHECKING

import yaml

from tests.cluster.processes import running, wait_ready
from tests.component.manager.conftest import TRAINWRIGHT, make_configuration
from trainwright.webhooks.configurations import UrlClient, build_webhook_configurations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.api_lane import ApiLane


@contextmanager
def running_manager(lane: ApiLane, *arguments: str) -> Iterator[None]:
    """`trainwright controller --serve all`, where the lane's servers run."""
    webhook_port, status_port, health_port = lane.find_ports(3)
    folder = lane.folder / f"manager-{webhook_port}"
    certificates = lane.authority.write_server(folder)
    config = folder / "config.yaml"
    health = {"healthProbeBindAddress": f"127.0.0.1:{health_port}"}
    config.write_text(
        yaml.safe_dump(make_configuration(statusServer={"port": status_port}, health=health))
    )
    machine, log = lane.machine, folder / "log"
    command = [
        *(machine.enter if machine else ()),
        *(str(TRAINWRIGHT), "controller", "--serve", "all", "--config", str(config)),
        *("--kubeconfig", str(lane.kubeconfig), "--cert-dir", str(certificates)),
        *("--webhook-host", "127.0.0.1", "--webhook-port", str(webhook_port)),
        *("--webhook-cert-dir", str(certificates), "--status-host", "127.0.0.1"),
        *arguments,
    ]
    client = UrlClient(url=f"https://127.0.0.1:{webhook_port}")
    with running(command, log, before=machine.join if machine else None) as process:
        ready = f"http://127.0.0.1:{health_port}/readyz"
        wait_ready(lambda: lane.probe(ready), process, log, "the manager")
        lane.apply(*build_webhook_configurations(client, base64.b64decode(lane.authority.bundle)))
        yield
