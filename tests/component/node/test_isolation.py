"""A network of each job's own: who meets in it, who may enter, and that nothing of it stays."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.component.node.conftest import require_networks
from tests.component.node.memory_api import make_container, make_pod
from trainwright.api.kinds import POD
from trainwright.api.wellknown import JOBSET_UID_LABEL
from trainwright.base.errors import LocalRunError
from trainwright.machinery.api import DeleteOptions
from trainwright.node.exec import run_exec

if TYPE_CHECKING:
    from tests.component.node.conftest import Laptop
    from trainwright.base.objects import Object

SERVER = (
    "import http.server as h\n"
    "class A(h.BaseHTTPRequestHandler):\n"
    "  def do_GET(self):\n"
    "    self.send_response(200); self.end_headers()\n"
    "h.HTTPServer(('', {port}), A).serve_forever()\n"
)


def make_member(job: str, name: str, script: str = "exec sleep 1000") -> Object:
    metadata = {"labels": {JOBSET_UID_LABEL: f"uid-of-{job}"}}
    return make_pod(make_container(script), name=name, metadata=metadata)


def network_of(laptop: Laptop, pod: str) -> str:
    return os.readlink(f"/proc/{target_pid(laptop, pod)}/ns/net")


def target_pid(laptop: Laptop, pod: str) -> int:
    return laptop.agent._find_running(laptop.pod(pod)).exec_target("main").pid


def find_processes_in(network: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            if os.readlink(path) == network:
                found.append(path.parts[2])
        except OSError:
            continue
    return found


def read_mounts() -> str:
    return Path("/proc/self/mountinfo").read_text()


@pytest.fixture
async def isolated(laptop: Laptop, tmp_path: Path) -> Laptop:
    require_networks(tmp_path / "probe")
    await laptop.start(isolation="namespace")
    return laptop


async def test_probes_reach_a_server(laptop: Laptop, isolation: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    await laptop.start(isolation=isolation)
    quick = {"periodSeconds": 0.1, "timeoutSeconds": 30, "failureThreshold": 300}
    address = f"('127.0.0.1', {port})"
    dial = ["python", "-c", f"import socket; socket.create_connection({address})"]
    container = {
        "name": "main",
        "image": "x",
        "command": ["python", "-c", SERVER.format(port=port)],
        "startupProbe": {"tcpSocket": {"port": port}, **quick},
        "readinessProbe": {"httpGet": {"port": port, "path": "/"}, **quick},
        "lifecycle": {"preStop": {"exec": {"command": dial}}},
    }
    await laptop.submit(make_pod(container))
    await laptop.wait_for(lambda: laptop.container().get("ready"))
    code, said = await run_exec(laptop.agent._find_running(laptop.pod()).exec_target("main"), dial)
    assert code == 0, said
    with socket.socket() as outside:
        reached = outside.connect_ex(("127.0.0.1", port)) == 0
    assert reached == (isolation != "namespace")


async def test_two_jobs_hold_one_port_and_reach_nobody_else(isolated: Laptop) -> None:
    with socket.create_server(("127.0.0.1", 0)) as outside:
        port = outside.getsockname()[1]
        program = (
            "import socket, time\n"
            "held = socket.create_server(('0.0.0.0', 29400))\n"
            "for place in (('127.0.0.1', {port}), ('192.0.2.1', 80)):\n"
            "  print(socket.socket().connect_ex(place) != 0, flush=True)\n"
            "time.sleep(1000)\n"
        ).replace("{port}", str(port))
        for name in ("red", "blue"):
            await isolated.submit(make_member(name, name, f'exec python -c "{program}"'))
        for name in ("red", "blue"):
            await isolated.wait_phase("Running", name=name)

            def has_said_both(name: str = name) -> bool:
                return isolated.text(name).count("\n") >= 2

            await isolated.wait_for(has_said_both)
            assert isolated.text(name) == "True\nTrue\n"
    assert network_of(isolated, "red") != network_of(isolated, "blue")


async def test_the_network_outlives_its_first_pod_and_the_plane(isolated: Laptop) -> None:
    for name in ("first", "second"):
        await isolated.submit(make_member("job", name))
        await isolated.wait_phase("Running", name=name)
    network = network_of(isolated, "first")
    assert network != os.readlink("/proc/self/ns/net")
    options = DeleteOptions(grace_period_s=0)
    await isolated.api.delete(POD, "default", "first", options)
    await isolated.wait_for(lambda: not isolated.pod("first"))
    await isolated.stop(kill=False)
    await isolated.start(isolation="namespace")
    await isolated.submit(make_member("job", "third"))
    await isolated.wait_phase("Running", name="third")
    await isolated.wait_for(lambda: isolated.phase("second") == "Running")
    assert network_of(isolated, "second") == network == network_of(isolated, "third")
    target = isolated.agent._find_running(isolated.pod("second")).exec_target("main")
    code, said = await run_exec(target, ["readlink", "/proc/self/ns/net"])
    assert (code, said.strip()) == (0, network)
    for name in ("second", "third"):
        await isolated.api.delete(POD, "default", name, options)
    await isolated.wait_for(lambda: not find_processes_in(network))
    await isolated.wait_for(lambda: not list((isolated.home / "networks").iterdir()))
    assert str(isolated.home) not in read_mounts()


async def test_a_system_that_does_not_allow_it_is_told_at_the_start(
    laptop: Laptop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LocalRunError, match=r"does not allow it.*nsenter.*set isolation to auto"):
        await laptop.start(isolation="namespace")
