from __future__ import annotations

import asyncio
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec
import pytest
import yaml

from tests.component.manager.conftest import (
    GROUP,
    LEASE,
    SHORT,
    TOKEN_USER,
    TRAINWRIGHT,
    Managers,
    make_configuration,
    recording_proxy,
    wait_until,
)
from tests.serving import TOKEN
from tests.support.planes import make_trainjob
from trainwright.api.crds import build_crd
from trainwright.api.kinds import CUSTOM_RESOURCE_DEFINITION, JOBSET

if TYPE_CHECKING:
    from pathlib import Path

WRITES = {"POST", "PUT", "PATCH", "DELETE"}


async def get(url: str, **headers: str) -> tuple[int, str]:
    connector = aiohttp.TCPConnector(ssl=False)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get(url, headers=headers) as response,
    ):
        return response.status, await response.text()


async def test_a_trainjob_gets_its_jobset_and_a_stop_leaves_nothing_behind(
    managers: Managers,
) -> None:
    manager = managers.start(
        controller={"groupKindConcurrency": {"TrainJob.trainer.kubeflow.org": 7}},
        health={
            "healthProbeBindAddress": "127.0.0.1:0",
            "readinessEndpointName": "ready",
        },
    )
    await managers.create_runtime()
    await managers.create_trainjob("first")
    jobset = await managers.wait_jobset("first")
    assert jobset["metadata"]["ownerReferences"][0]["name"] == "first"

    probes = await manager.address("probes")
    for path in ("healthz", "readyz", "ready"):
        assert await get(f"{probes}/{path}") == (200, "ok")

    metrics = await manager.address("metrics")

    async def scrape(line: str) -> bool:
        return line in (await get(f"{metrics}/metrics"))[1]

    for line in (
        'controller_runtime_max_concurrent_reconciles{controller="trainjob_controller"} 7.0',
        'controller_runtime_reconcile_total{controller="trainjob_controller",result="success"}',
        'workqueue_adds_total{controller="trainjob_controller",name="trainjob_controller"}',
        'leader_election_master_status{name="trainer.kubeflow.org"} 1.0',
        'trainwright_trainjobs{state="Pending"} 1.0',
        'rest_client_requests_total{code="201",',
        "trainwright_clock_skew_seconds",
    ):
        await wait_until(lambda line=line: scrape(line), line)  # type: ignore[misc]

    manager.send(signal.SIGTERM)
    assert await manager.wait_end() == 0
    lease = await managers.find(LEASE)
    assert lease is not None
    assert lease["spec"]["holderIdentity"] == ""
    for line in manager.log.splitlines():
        assert msgspec.json.decode(line)["level"] == "info", line


async def test_another_manager_takes_over_from_one_that_is_killed(managers: Managers) -> None:
    first = managers.start(leaderElection=SHORT)
    leader = await wait_until(managers.holder, "somebody holds the lease")
    second = managers.start("--log-format", "text", leaderElection=SHORT)
    await second.wait_log("is held by")
    await second.wait_log("caches are in step")
    first.send(signal.SIGKILL)
    await managers.create_runtime()
    await managers.create_trainjob("orphan")
    await managers.wait_jobset("orphan")
    assert await managers.holder() not in {"", leader}


async def test_a_leader_that_slept_longer_than_its_lease_writes_nothing(managers: Managers) -> None:
    await managers.create_runtime()
    async with recording_proxy(managers.server, TOKEN_USER) as proxy:
        first = managers.start(kubeconfig=proxy.kubeconfig, leaderElection=SHORT)
        await first.wait_log("reconciling")
        second = managers.start(leaderElection=SHORT)
        await second.wait_log("waiting")
        first.send(signal.SIGSTOP)
        leader = await managers.holder()

        async def holder_changed() -> bool:
            return await managers.holder() not in {"", leader}

        await wait_until(holder_changed, "the second one leads")
        # Plenty of reasons for the first one to write as soon as it wakes up.
        for number in range(10):
            await managers.create_trainjob(f"job-{number}")
        await managers.wait_jobset("job-9")
        before = len(proxy.seen)
        first.send(signal.SIGCONT)
        assert await first.wait_end() == 5
        assert "is lost" in first.log
        written = [
            request
            for request in proxy.seen[before:]
            if request.method in WRITES and request.status < 400
        ]
        assert written == []
    assert await managers.holder() not in {"", leader}
    assert second.process.poll() is None


async def test_a_token_file_is_read_anew(managers: Managers) -> None:
    token_file = managers.folder / "token"
    token_file.write_text("wrong")
    async with recording_proxy(managers.server, {"tokenFile": str(token_file)}) as proxy:
        manager = managers.start(kubeconfig=proxy.kubeconfig)
        await wait_until(lambda: [r for r in proxy.seen if r.status == 401], "it is refused")
        assert (await get(f"{await manager.address('probes')}/readyz"))[0] == 500
        token_file.write_text(TOKEN)
        await managers.create_runtime()
        await managers.create_trainjob("late")
        await managers.wait_jobset("late")
        assert (await get(f"{await manager.address('probes')}/readyz"))[0] == 200


async def test_a_jobset_crd_that_comes_later_is_waited_for(managers: Managers) -> None:
    crds = CUSTOM_RESOURCE_DEFINITION.path()
    async with managers.server.http.delete(f"{crds}/{JOBSET.resource}") as response:
        assert response.status == 200, await response.text()
    manager = managers.start()
    await managers.create_runtime()
    await managers.create_trainjob("patient")
    await manager.wait_log(f"{JOBSET.resource} is not served: install JobSet")
    await managers.create(crds, build_crd(JOBSET))
    await managers.wait_jobset("patient")


async def test_metrics_are_for_those_who_may_read_them(managers: Managers) -> None:
    manager = managers.start(
        metrics={"bindAddress": "127.0.0.1:0", "secureServing": True, "auth": {"enabled": True}}
    )
    url = f"{await manager.address('metrics')}/metrics"
    assert url.startswith("https://")
    assert (await get(url))[0] == 401
    assert (await get(url, Authorization="Bearer wrong"))[0] == 401
    status, text = await get(url, Authorization=f"Bearer {TOKEN}")
    assert (status, "process_cpu_seconds_total" in text) == (200, True)


@pytest.mark.parametrize(
    ("arguments", "fields", "code", "said"),
    [
        ((), {"webhook": {"prot": 1}}, 3, 'webhook.prot: Invalid value: "prot": unknown field'),
        ((), {"clientConnection": {"qps": "fast"}}, 3, "clientConnection.qps"),
        (("--feature-gates", "Warp=true"), {}, 3, "no feature gate; there are TrainJobStatus"),
        (("--kubeconfig", "/nowhere"), {}, 3, "/nowhere"),
        (("--context", "other"), {}, 3, 'contexts has no "other"'),
        (("--config", "/nowhere"), {}, 3, "--config /nowhere"),
    ],
)
def test_what_is_wrong_at_the_start_is_said(
    tmp_path: Path, arguments: tuple[str, ...], fields: dict[str, Any], code: int, said: str
) -> None:
    config, kubeconfig = tmp_path / "config", tmp_path / "kubeconfig"
    config.write_text(yaml.safe_dump(make_configuration(**fields)))
    kubeconfig.write_text(
        yaml.safe_dump({"contexts": [{"name": "x", "context": {}}], "current-context": "x"})
    )
    done = subprocess.run(
        [
            *(str(TRAINWRIGHT), "controller", "--config", str(config)),
            *("--kubeconfig", str(kubeconfig), *arguments),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr


async def test_an_address_that_is_taken_ends_the_manager(managers: Managers) -> None:
    holder = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", 0)
    async with holder:
        port = holder.sockets[0].getsockname()[1]
        manager = managers.start(health={"healthProbeBindAddress": f"127.0.0.1:{port}"})
        assert await manager.wait_end() == 5
        assert "cannot be listened on" in manager.log


async def test_the_feature_gate_tells_pods_where_to_report(managers: Managers) -> None:
    certificates = managers.folder / "certs-of-the-manager"
    certificates.mkdir()
    (certificates / "ca.crt").write_text("THE-AUTHORITY")
    managers.start("--feature-gates", "TrainJobStatus=true", statusServer={"port": 4443})
    await managers.create_runtime()
    await managers.create_trainjob("reporting")
    jobset = await managers.wait_jobset("reporting")
    told = msgspec.json.encode(jobset["spec"]).decode()
    assert "https://kubeflow-trainer-controller-manager.kubeflow-system.svc:4443/" in told
    config_maps = await managers.find("/api/v1/namespaces/default/configmaps")
    assert "THE-AUTHORITY" in msgspec.json.encode(config_maps).decode()


async def test_only_the_namespaces_that_are_named_are_looked_after(managers: Managers) -> None:
    await managers.create_runtime()
    for name in ("ours", "theirs", "others"):
        await managers.create("/api/v1/namespaces", {"metadata": {"name": name}})
    manager = managers.start("--namespace", "ours", "-n", "others")
    await manager.wait_log("reconciling")
    for name in ("theirs", "others", "ours"):
        job = make_trainjob("j", ["true"], runtime="plain")
        await managers.create(f"{GROUP}/namespaces/{name}/trainjobs", job)
    for name in ("others", "ours"):
        path = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{name}/jobsets/j"
        await wait_until(lambda path=path: managers.find(path), path)  # type: ignore[misc]
    assert await managers.find("/apis/jobset.x-k8s.io/v1alpha2/namespaces/theirs/jobsets/j") is None
