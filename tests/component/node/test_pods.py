from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.component.node.memory_api import make_container, make_pod
from trainwright.api.kinds import CONFIG_MAP, POD
from trainwright.base.objects import dig, find_condition
from trainwright.machinery.api import DeleteOptions
from trainwright.node.instance import find_marked

if TYPE_CHECKING:
    from pathlib import Path

    from tests.component.node.conftest import Laptop


@pytest.mark.parametrize(
    ("script", "phase", "code", "reason"),
    [
        ("exit 0", "Succeeded", 0, "Completed"),
        ("exit 7", "Failed", 7, "Error"),
        ("kill -TERM $$$$", "Failed", 143, "Error"),
        ("kill -SEGV $$$$", "Failed", 139, "Error"),
    ],
)
async def test_exit_codes(laptop: Laptop, script: str, phase: str, code: int, reason: str) -> None:
    await laptop.start()
    await laptop.submit(make_pod(make_container(script)))
    pod = await laptop.wait_phase("Succeeded", "Failed")
    assert laptop.phase() == phase
    state = laptop.container()["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (code, reason)
    ready = find_condition(pod, "Ready")
    assert ready is not None
    assert ready["reason"] == ("PodCompleted" if phase == "Succeeded" else "PodFailed")


async def test_missing_program_says_what_to_install(laptop: Laptop) -> None:
    await laptop.start()
    container = make_container("")
    container["command"] = ["tune", "run"]
    container["env"] = [{"name": "PATH", "value": "/nowhere"}]
    await laptop.submit(make_pod(container))
    await laptop.wait_phase("Failed")
    state = laptop.container()["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (128, "StartError")
    assert "install torchtune" in state["message"]


async def test_missing_command_is_a_config_error(laptop: Laptop) -> None:
    await laptop.start()
    await laptop.submit(make_pod({"name": "main", "image": "busybox"}))
    waiting = await laptop.wait_for(
        lambda: (
            dig(laptop.container(), "state", "waiting", "reason") == "CreateContainerConfigError"
        )
    )
    assert waiting
    assert "give command" in laptop.container()["state"]["waiting"]["message"]
    assert laptop.phase() == "Pending"


@pytest.mark.parametrize("use_cgroups", [True, False], ids=["by cgroup", "by walk"])
async def test_no_process_survives_its_container(
    laptop: Laptop, tmp_path: Path, use_cgroups: bool, isolation: str
) -> None:
    """Sessions of their own and double forks do not save a child."""
    await laptop.start(use_cgroups=use_cgroups, isolation=isolation)
    script = (
        f"setsid sh -c 'echo up > {tmp_path}/a; sleep 1000' & "
        f"(setsid sh -c '(echo started > {tmp_path}/b; exec sleep 1001) &' &) ; "
        f"while [ ! -s {tmp_path}/a ] || [ ! -s {tmp_path}/b ]; do sleep 0.02; done; exit 3"
    )
    await laptop.submit(make_pod(make_container(script)))
    await laptop.wait_phase("Failed")
    container_id = laptop.container()["containerID"]
    assert find_marked(f"TRAINWRIGHT_CONTAINER_ID={container_id}".encode()) == []
    assert laptop.container()["state"]["terminated"]["exitCode"] == 3


async def test_grace_is_given_and_ends(laptop: Laptop, tmp_path: Path) -> None:
    await laptop.start()
    script = f"trap 'echo got > {tmp_path}/term' TERM; echo up; while :; do sleep 0.05; done"
    await laptop.submit(make_pod(make_container(script)))
    await laptop.wait_phase("Running")
    await laptop.wait_for(lambda: "up" in laptop.text())
    await laptop.api.delete(POD, "default", "pod", DeleteOptions(grace_period_s=2))
    await laptop.wait_for(lambda: not laptop.pod())
    assert (tmp_path / "term").read_text() == "got\n"
    assert laptop.api.phases[-1] == "Failed"
    await laptop.wait_for(lambda: not list((laptop.home / "pods").iterdir()))


async def test_force_deletion_kills_the_process(laptop: Laptop) -> None:
    await laptop.start()
    await laptop.submit(make_pod(make_container("trap '' TERM; while :; do sleep 0.05; done")))
    await laptop.wait_phase("Running")
    marker = f"TRAINWRIGHT_CONTAINER_ID={laptop.container()['containerID']}".encode()
    assert find_marked(marker)
    await laptop.api.delete(POD, "default", "pod", DeleteOptions(grace_period_s=0))
    await laptop.wait_for(lambda: not find_marked(marker))
    await laptop.wait_for(lambda: not list((laptop.home / "pods").iterdir()))


async def test_failed_container_is_restarted_with_its_state(laptop: Laptop, tmp_path: Path) -> None:
    await laptop.start()
    script = f"echo x >> {tmp_path}/n; [ $(wc -l < {tmp_path}/n) -ge 4 ] && exit 0; exit 5"
    pod = make_pod(make_container(script), restartPolicy="OnFailure")
    await laptop.submit(pod)
    await laptop.wait_phase("Succeeded")
    row = laptop.container()
    assert row["restartCount"] == 3
    assert row["lastState"]["terminated"]["exitCode"] == 5
    assert "BackOff" in laptop.reasons()
    folder = laptop.home / "pods" / laptop.pod()["metadata"]["uid"] / "containers" / "main"
    assert sorted(path.name for path in folder.iterdir()) == ["0.2", "0.3"]


async def test_init_containers_run_in_order_and_sidecars_end_last(
    laptop: Laptop, tmp_path: Path
) -> None:
    await laptop.start()
    note = tmp_path / "order"
    pod = make_pod(
        make_container(f"echo main >> {note}"),
        initContainers=[
            make_container(f"echo first >> {note}", "first"),
            make_container(
                f"trap 'echo side-end >> {note}; exit 0' TERM; echo side >> {note}; "
                "while :; do sleep 0.05; done",
                "side",
                restartPolicy="Always",
                startupProbe={"exec": {"command": ["grep", "side", str(note)]}, "periodSeconds": 1},
            ),
            make_container(f"echo second >> {note}", "second"),
        ],
    )
    await laptop.submit(pod)
    await laptop.wait_phase("Succeeded")
    assert note.read_text().split() == ["first", "side", "second", "main", "side-end"]


async def test_failed_init_container_fails_the_pod(laptop: Laptop) -> None:
    await laptop.start()
    pod = make_pod(make_container("exit 0"), initContainers=[make_container("exit 4", "init")])
    await laptop.submit(pod)
    await laptop.wait_phase("Failed")
    assert laptop.container("main")["state"]["waiting"]["reason"] == "PodInitializing"


async def test_missing_reference_waits_for_its_object(laptop: Laptop) -> None:
    await laptop.start()
    container = make_container("echo value=$VALUE")
    container["env"] = [
        {"name": "VALUE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "k"}}}
    ]
    await laptop.submit(make_pod(container))
    await laptop.wait_for(lambda: dig(laptop.container(), "state", "waiting", "message"))
    waiting = laptop.container()["state"]["waiting"]
    assert waiting["reason"] == "CreateContainerConfigError"
    assert waiting["message"] == 'configmap "settings" not found'
    config = {"metadata": {"name": "settings", "namespace": "default"}, "data": {"k": "7"}}
    await laptop.api.create(CONFIG_MAP, config, field_manager="test")
    await laptop.wait_phase("Succeeded")
    assert laptop.text() == "value=7\n"


async def test_memory_limit_ends_in_oom_killed(laptop: Laptop) -> None:
    await laptop.start()
    container = make_container("")
    container["command"] = [
        "python", "-c", "import time\nx = bytearray(200_000_000)\ntime.sleep(1000)"
    ]  # fmt: skip
    container["resources"] = {"limits": {"memory": "60Mi"}}
    await laptop.submit(make_pod(container))
    await laptop.wait_phase("Failed")
    state = laptop.container()["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (137, "OOMKilled")


async def test_running_processes_are_adopted_by_the_next_plane(
    laptop: Laptop, tmp_path: Path
) -> None:
    await laptop.start()
    script = f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; exit 9"
    await laptop.submit(make_pod(make_container(script)))
    await laptop.wait_phase("Running")
    before = laptop.container()["containerID"]
    await laptop.stop(kill=False)
    await laptop.start()
    await asyncio.sleep(0)
    assert laptop.phase() == "Running"
    (tmp_path / "go").touch()
    await laptop.wait_phase("Failed")
    assert laptop.container()["state"]["terminated"]["exitCode"] == 9
    assert laptop.container()["containerID"] == before


async def test_end_while_no_plane_runs_is_read_from_its_record(
    laptop: Laptop, tmp_path: Path
) -> None:
    await laptop.start()
    script = f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; exit 6"
    await laptop.submit(make_pod(make_container(script)))
    await laptop.wait_phase("Running")
    uid = laptop.pod()["metadata"]["uid"]
    await laptop.stop(kill=False)
    (tmp_path / "go").touch()
    record = laptop.home / "pods" / uid / "containers" / "main" / "0.0" / "exit.json"
    await laptop.wait_for(record.exists)
    await laptop.start()
    await laptop.wait_phase("Failed")
    assert laptop.container()["state"]["terminated"]["exitCode"] == 6


@pytest.mark.parametrize("use_cgroups", [True, False], ids=["by cgroup", "by walk"])
async def test_lost_process_is_reported_and_its_children_killed(
    laptop: Laptop, use_cgroups: bool, isolation: str
) -> None:
    await laptop.start(use_cgroups=use_cgroups, isolation=isolation)
    await laptop.submit(make_pod(make_container("setsid sleep 1000 & sleep 1000; exit 0")))
    await laptop.wait_phase("Running")
    marker = f"TRAINWRIGHT_CONTAINER_ID={laptop.container()['containerID']}".encode()
    uid = laptop.pod()["metadata"]["uid"]
    record = laptop.home / "pods" / uid / "containers" / "main" / "0.0" / "started.json"
    os.kill(json.loads(record.read_text())["shimPid"], signal.SIGKILL)
    await laptop.wait_phase("Failed")
    state = laptop.container()["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (137, "ContainerStatusUnknown")
    await laptop.wait_for(lambda: laptop.reasons().count("ContainerStatusUnknown") == 1)
    await laptop.wait_for(lambda: not find_marked(marker))


async def test_pods_removed_meanwhile_are_killed_at_the_next_start(laptop: Laptop) -> None:
    await laptop.start()
    await laptop.submit(make_pod(make_container("sleep 1000")))
    await laptop.wait_phase("Running")
    marker = f"TRAINWRIGHT_CONTAINER_ID={laptop.container()['containerID']}".encode()
    await laptop.stop(kill=False)
    laptop.api.objects.pop(("Pod", "default", "pod"))
    await laptop.start()
    await laptop.wait_for(lambda: not find_marked(marker))
    await laptop.wait_for(lambda: not list((laptop.home / "pods").iterdir()))


async def test_idle_pod_writes_nothing(laptop: Laptop) -> None:
    await laptop.start()
    await laptop.submit(make_pod(make_container("sleep 1000")))
    await laptop.wait_phase("Running")
    await laptop.wait_for(lambda: "Started" in laptop.reasons())
    before = laptop.api.writes
    until = time.monotonic() + 0.5
    await laptop.wait_for(lambda: time.monotonic() > until)
    assert laptop.api.writes == before


async def test_readiness_and_liveness(laptop: Laptop, tmp_path: Path) -> None:
    await laptop.start()
    container = make_container(
        f"echo x >> {tmp_path}/runs; while :; do sleep 0.05; done",
        readinessProbe={"exec": {"command": ["test", "-e", f"{tmp_path}/ready"]}, "periodSeconds": 0.05},
        livenessProbe={
            "exec": {"command": ["test", "!", "-e", f"{tmp_path}/sick"]},
            "periodSeconds": 0.05,
            "failureThreshold": 1,
            "timeoutSeconds": 30,
        },
    )  # fmt: skip
    await laptop.submit(
        make_pod(container, restartPolicy="Always", terminationGracePeriodSeconds=1)
    )
    await laptop.wait_phase("Running")
    assert laptop.container()["ready"] is False
    (tmp_path / "ready").touch()
    await laptop.wait_for(lambda: laptop.container()["ready"])
    (tmp_path / "sick").touch()
    await laptop.wait_for(lambda: laptop.container()["restartCount"] >= 1)
    (tmp_path / "sick").unlink()
    assert "Unhealthy" in laptop.reasons()
    await laptop.wait_for(lambda: laptop.container()["ready"])
