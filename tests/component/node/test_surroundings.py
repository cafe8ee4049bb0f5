from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from tests.component.node.memory_api import make_container, make_pod
from trainwright.api.kinds import CONFIG_MAP, JOBSET, PERSISTENT_VOLUME_CLAIM, SECRET
from trainwright.api.wellknown import JOBSET_NAME_LABEL, JOBSET_UID_LABEL
from trainwright.node.names import LOOPBACK_DEVICE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.component.node.conftest import Laptop
    from trainwright.base.objects import Object


async def test_volumes_are_met_at_their_paths(
    laptop: Laptop, tmp_path: Path, isolation: str
) -> None:
    await laptop.start(isolation=isolation)
    meta = {"namespace": "default"}
    config = {"metadata": {"name": "cm", **meta}, "data": {"a.txt": "alpha\n"}}
    secret = {
        "metadata": {"name": "sec", **meta},
        "data": {"key": base64.b64encode(b"hidden\n").decode()},
    }
    claim = {"metadata": {"name": "claim", **meta}}
    await laptop.api.create(CONFIG_MAP, config, field_manager="test")
    await laptop.api.create(SECRET, secret, field_manager="test")
    await laptop.api.create(PERSISTENT_VOLUME_CLAIM, claim, field_manager="test")
    (tmp_path / "host").mkdir()
    script = (
        "set -e; cat /workspace/config/a.txt; cat /run/tw-secret/key; stat -c %a /run/tw-secret/key; "
        "echo kept > /workspace/data/file; echo out > /tw-host/file; cat $PLACE/file; "
        "cat /workspace/all/name /workspace/all/a.txt; cat /workspace/one.txt"
    )
    container = make_container(script, env=[{"name": "PLACE", "value": "/workspace/data"}])
    container["volumeMounts"] = [
        {"name": "config", "mountPath": "/workspace/config"},
        {"name": "config", "mountPath": "/workspace/one.txt", "subPath": "a.txt"},
        {"name": "secret", "mountPath": "/run/tw-secret", "readOnly": True},
        {"name": "data", "mountPath": "/workspace/data", "subPath": "sub"},
        {"name": "host", "mountPath": "/tw-host"},
        {"name": "all", "mountPath": "/workspace/all"},
    ]
    field = {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
    volumes = [
        {"name": "config", "configMap": {"name": "cm"}},
        {"name": "secret", "secret": {"secretName": "sec"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "claim"}},
        {"name": "host", "hostPath": {"path": str(tmp_path / "host")}},
        {
            "name": "all",
            "projected": {
                "sources": [{"downwardAPI": {"items": [field]}}, {"configMap": {"name": "cm"}}]
            },
        },
    ]
    await laptop.submit(make_pod(container, volumes=volumes))
    await laptop.wait_phase("Succeeded", "Failed")
    assert laptop.text() == "alpha\nhidden\n600\nkept\npodalpha\nalpha\n"
    assert (tmp_path / "host" / "file").read_text() == "out\n"
    assert list((laptop.home / "claims").glob("default/*/sub/file"))
    assert "hidden" not in "".join(
        path.read_text(errors="replace")
        for path in laptop.home.rglob("*")
        if path.is_file() and path.name != "log"
    )


async def test_volume_of_an_unknown_kind_is_refused_aloud(laptop: Laptop) -> None:
    await laptop.start()
    container = make_container("exit 0")
    await laptop.submit(make_pod(container, volumes=[{"name": "x", "nfs": {"server": "a"}}]))
    await laptop.wait_for(lambda: "Failed" in laptop.reasons())
    assert "of type nfs cannot be mounted" in laptop.container()["state"]["waiting"]["message"]


async def test_environment_of_a_process(laptop: Laptop, tmp_path: Path) -> None:
    await laptop.start(api_host="10.0.0.1", api_port=443)
    container = make_container(
        'echo "$A|$B|$NAME|$CPU|$OMP_NUM_THREADS|$GLOO_SOCKET_IFNAME|$NCCL_SOCKET_IFNAME|$TP_SOCKET_IFNAME|$HOSTNAME|$(A)|$KUBERNETES_SERVICE_HOST"; '
        "pwd; command -v python",
        env=[
            {"name": "A", "value": "1"},
            {"name": "B", "value": "b$(A)$(LATER)$$(A)"},
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "GLOO_SOCKET_IFNAME", "value": "eth7"},
        ],
        resources={"limits": {"cpu": "1500m"}},
        workingDir="/does/not/exist",
    )
    metadata = {"annotations": {"trainwright.dev/working-dir": str(tmp_path)}}
    await laptop.submit(make_pod(container, metadata=metadata))
    await laptop.wait_phase("Succeeded")
    line, folder, python = laptop.text().splitlines()
    assert (
        line == f"1|b1$(LATER)$(A)|pod|2|1|eth7|{LOOPBACK_DEVICE}|{LOOPBACK_DEVICE}|pod|1|10.0.0.1"
    )
    assert folder == str(tmp_path)
    assert python == str(laptop.agent._settings.python.parent / "python")


async def test_two_jobs_with_one_port_run_side_by_side(laptop: Laptop, isolation: str) -> None:
    """Each job's pods meet at the job's own port, under the names that the cluster would have."""
    await laptop.start(isolation=isolation)
    server = (
        "import os,socket\n"
        "s=socket.create_server(('',int(os.environ['PET_MASTER_PORT'])))\n"
        "c,_=s.accept()\n"
        "c.sendall(os.environ['JOB'].encode())\n"
        "c.close()\n"
    )
    client = (
        "import os,socket,time,sys\n"
        "host,port=sys.argv[1].split(':')\n"
        "for _ in range(600):\n"
        "  try:\n"
        "    c=socket.create_connection((host,int(port)))\n"
        "    break\n"
        "  except OSError: time.sleep(0.05)\n"
        "print(c.recv(100).decode())\n"
    )

    def make(job: str, index: int) -> Object:
        env = [
            {"name": "PET_MASTER_ADDR", "value": f"{job}-node-0-0.{job}"},
            {"name": "PET_MASTER_PORT", "value": "29500"},
            {"name": "JOB", "value": job},
        ]
        program = client if index else server
        container = {
            "name": "main",
            "image": "x",
            "command": ["python", "-c", program, f"{job}-node-0-0.{job}:29500"],
            "env": env,
        }
        labels = {JOBSET_NAME_LABEL: job, JOBSET_UID_LABEL: f"uid-of-{job}"}
        return make_pod(
            container,
            name=f"{job}-{index}",
            metadata={"labels": labels},
            hostname=f"{job}-node-0-{index}",
            subdomain=job,
        )

    for job in ("red", "blue"):
        row = {"name": "node", "template": {"spec": {"completions": 2}}}
        jobset = {
            "metadata": {"name": job, "namespace": "default"},
            "spec": {"replicatedJobs": [row]},
        }
        await laptop.api.create(JOBSET, jobset, field_manager="test")
    for index in (1, 0):
        for job in ("red", "blue"):
            await laptop.submit(make(job, index))
    for job in ("red", "blue"):
        for index in (0, 1):
            await laptop.wait_phase("Succeeded", "Failed", name=f"{job}-{index}")
        assert laptop.text(f"{job}-1") == f"{job}\n"


async def test_files_lead_to_where_the_job_is(laptop: Laptop, isolation: str) -> None:
    """Names and ports in mounted files; what MPI tells hosts apart by stays, and so do bytes."""
    await laptop.start(isolation=isolation)
    place = "job-node-0-0.job.default.svc:29500"
    config = {
        "metadata": {"name": "cm", "namespace": "default"},
        "data": {"rdzv.yaml": f"endpoint: {place}\nother: a.b:295001\n", "hostfile": f"{place}\n"},
        "binaryData": {"raw": base64.b64encode(b"\xff job-node-0-0.job\n").decode()},
    }
    await laptop.api.create(CONFIG_MAP, config, field_manager="test")
    container = make_container(
        "echo $MASTER_PORT; cat /etc/job/rdzv.yaml /etc/job/hostfile; wc -c < /etc/job/raw",
        env=[{"name": "MASTER_PORT", "value": "29500"}],
        volumeMounts=[{"name": "cm", "mountPath": "/etc/job"}],
    )
    pod = make_pod(
        container,
        metadata={"labels": {JOBSET_NAME_LABEL: "job", JOBSET_UID_LABEL: "uid-of-job"}},
        volumes=[{"name": "cm", "configMap": {"name": "cm"}}],
        hostname="job-node-0-0",
        subdomain="job",
    )
    await laptop.submit(pod)
    await laptop.wait_phase("Succeeded", "Failed")
    port, endpoint, other, hostfile, size = laptop.text().splitlines()
    wanted = place if isolation == "namespace" else f"127.0.0.1:{port}"
    assert endpoint == f"endpoint: {wanted}"
    assert (other, hostfile, size) == ("other: a.b:295001", place, "19")
    assert (port == "29500") == (isolation == "namespace")


async def test_names_resolve_where_namespaces_are_allowed(laptop: Laptop) -> None:
    await laptop.start()
    if laptop.agent.isolation == "none":
        return
    container = make_container("hostname; getent hosts job-node-0-0.job | cut -d' ' -f1")
    container["command"][2] = "hostname; getent hosts $(printf %s job-node-0-0.jo; echo b)"
    pod = make_pod(container, hostname="job-node-0-0", subdomain="job")
    await laptop.submit(pod)
    await laptop.wait_phase("Succeeded")
    name, found = laptop.text().splitlines()
    assert name == "job-node-0-0"
    assert found.split()[0] == "127.0.0.1"
