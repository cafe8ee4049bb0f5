from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.component.node.memory_api import make_container, make_pod
from trainwright.api.kinds import POD, SECRET
from trainwright.api.wellknown import WORKING_DIR_ANNOTATION
from trainwright.base.objects import dig
from trainwright.machinery.api import DeleteOptions
from trainwright.node.instance import find_marked
from trainwright.node.volumes import find_memory_folder

if TYPE_CHECKING:
    from pathlib import Path

    from tests.component.node.conftest import Laptop
    from trainwright.base.objects import Object

LOOP = "while :; do sleep 0.05; done"
MISSING = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "none", "key": "k"}}}]


async def delete(laptop: Laptop, grace_s: int) -> None:
    await laptop.api.delete(POD, "default", "pod", DeleteOptions(grace_period_s=grace_s))


@pytest.mark.parametrize(
    ("pod", "container", "reason"),
    [
        (
            make_pod(make_container("exit 0", env=MISSING)),
            "main",
            "CreateContainerConfigError",
        ),
        (
            make_pod(make_container("exit 1"), restartPolicy="Always"),
            "main",
            "CrashLoopBackOff",
        ),
    ],
    ids=["waits for a secret", "crash loop"],
)
async def test_pod_that_waits_can_be_deleted(
    laptop: Laptop, pod: Object, container: str, reason: str
) -> None:
    await laptop.start(backoff_cap_s=1000.0)
    await laptop.submit(pod)
    await laptop.wait_for(
        lambda: dig(laptop.container(container), "state", "waiting", "reason") == reason
    )
    await delete(laptop, 30)
    await laptop.wait_for(lambda: not laptop.pod())
    assert laptop.api.phases[-1] == "Failed"


async def test_pod_can_be_deleted_while_an_init_container_runs(laptop: Laptop) -> None:
    await laptop.start()
    pod = make_pod(
        make_container("exit 0"),
        initContainers=[
            make_container(LOOP, "side", restartPolicy="Always"),
            make_container(LOOP, "init"),
        ],
    )
    await laptop.submit(pod)
    await laptop.wait_for(lambda: dig(laptop.container("init"), "state", "running"))
    ids = [laptop.container(name)["containerID"] for name in ("side", "init")]
    await delete(laptop, 30)
    await laptop.wait_for(lambda: not laptop.pod())
    assert laptop.api.phases[-1] == "Failed"
    for container_id in ids:
        assert not find_marked(f"TRAINWRIGHT_CONTAINER_ID={container_id}".encode())


async def test_pre_stop_hook_runs_before_the_signal(laptop: Laptop, tmp_path: Path) -> None:
    await laptop.start()
    note = tmp_path / "note"
    container = make_container(
        f"trap 'echo term >> {note}; exit 0' TERM; touch {tmp_path}/up; {LOOP}",
        env=[{"name": "COLOUR", "value": "red"}],
        lifecycle={"preStop": {"exec": {"command": ["sh", "-c", f"echo $COLOUR >> {note}"]}}},
    )
    await laptop.submit(make_pod(container))
    await laptop.wait_for((tmp_path / "up").exists)
    await laptop.wait_phase("Running")
    await delete(laptop, 60)
    await laptop.wait_for(lambda: not laptop.pod())
    assert note.read_text().split() == ["red", "term"]
    assert laptop.api.phases[-1] == "Succeeded"


async def test_grace_can_be_shortened(laptop: Laptop, tmp_path: Path) -> None:
    await laptop.start()
    script = f"trap 'echo x >> {tmp_path}/terms' TERM; touch {tmp_path}/up; {LOOP}"
    await laptop.submit(make_pod(make_container(script)))
    await laptop.wait_for((tmp_path / "up").exists)
    await laptop.wait_phase("Running")
    await delete(laptop, 50)
    await laptop.wait_for((tmp_path / "terms").exists)
    await delete(laptop, 1)
    await laptop.wait_for(lambda: not laptop.pod())
    assert (tmp_path / "terms").read_text() == "x\n"


async def test_pod_that_starts_this_moment_is_stopped_too(laptop: Laptop) -> None:
    """The order to end may come before the shim has opened its ears."""
    await laptop.start()
    await laptop.submit(make_pod(make_container(LOOP)))
    folder = laptop.home / "pods" / laptop.pod()["metadata"]["uid"] / "containers" / "main" / "0.0"
    await laptop.wait_for((folder / "id").exists)
    await delete(laptop, 50)
    await laptop.wait_for(lambda: not laptop.pod())


async def test_active_deadline_fails_the_pod(laptop: Laptop) -> None:
    await laptop.start()
    pod = make_pod(make_container(LOOP), activeDeadlineSeconds=1)
    await laptop.submit(pod)
    await laptop.wait_phase("Failed")
    assert laptop.pod()["status"]["reason"] == "DeadlineExceeded"


async def test_last_words_reach_the_status(laptop: Laptop) -> None:
    await laptop.start()
    pod = make_pod(
        make_container("printf words > /dev/termination-log; exit 1", "own"),
        make_container(
            "echo from the log; exit 1", "log", terminationMessagePolicy="FallbackToLogsOnError"
        ),
    )
    await laptop.submit(pod)
    await laptop.wait_phase("Failed")
    assert laptop.container("own")["state"]["terminated"]["message"] == "words"
    assert laptop.container("log")["state"]["terminated"]["message"] == "from the log\n"


async def test_probes_over_http_and_tcp(laptop: Laptop) -> None:
    await laptop.start()
    port = 29876
    env = [{"name": "MASTER_PORT", "value": str(port)}]
    ports = [{"name": "web", "containerPort": port}]
    script = "cd /; exec python -m http.server --bind 127.0.0.1 $MASTER_PORT"
    container = make_container(
        script,
        env=env,
        ports=ports,
        startupProbe={"tcpSocket": {"port": port}, "periodSeconds": 0.1, "failureThreshold": 600},
        readinessProbe={"httpGet": {"port": "web"}, "periodSeconds": 0.1, "timeoutSeconds": 10},
    )
    await laptop.submit(make_pod(container))
    await laptop.wait_for(lambda: laptop.container().get("ready"))
    assert laptop.container()["started"] is True


async def test_events_tell_of_a_lost_folder_and_of_the_exit(laptop: Laptop, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    await laptop.start()
    script = "echo out of luck > $TRAINWRIGHT_TERMINATION_LOG; exit 3"
    annotations = {WORKING_DIR_ANNOTATION: str(gone)}
    await laptop.submit(make_pod(make_container(script), metadata={"annotations": annotations}))
    await laptop.wait_phase("Failed")
    told = {"WorkingFolderLost": str(gone), "ContainerExited": "exited with code 3: out of luck"}
    for reason, words in told.items():

        def is_told(wanted: str = reason) -> bool:
            return wanted in laptop.reasons()

        await laptop.wait_for(is_told)
        event = next(event for event in laptop.api.events if event["reason"] == reason)
        assert words in event["note"]
        assert event["type"] == "Warning"


async def test_a_user_that_a_pod_does_not_get_is_told_once(laptop: Laptop) -> None:
    await laptop.start()
    other = os.getuid() + 1
    container = make_container(LOOP, securityContext={"runAsUser": other})
    await laptop.submit(make_pod(container, securityContext={"runAsUser": os.getuid()}))
    await laptop.wait_phase("Running")
    await laptop.stop(kill=False)
    await laptop.start()
    await delete(laptop, 1)
    await laptop.wait_for(lambda: not laptop.pod())
    told = [event for event in laptop.api.events if event["reason"] == "SecurityContextIgnored"]
    assert len(told) == 1
    assert f"runs as user {os.getuid()}, not {other}" in told[0]["note"]


async def test_secrets_go_when_the_pod_has_ended(laptop: Laptop) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "default"},
        "data": {"key": "dmFsdWU="},
    }
    await laptop.api.create(SECRET, secret, field_manager="test")
    mount = {"name": "v", "mountPath": "/secrets"}
    volume = {"name": "v", "secret": {"secretName": "s"}}
    await laptop.start()
    container = make_container("cat /secrets/key", volumeMounts=[mount])
    await laptop.submit(make_pod(container, volumes=[volume]))
    pod = await laptop.wait_phase("Succeeded")
    assert laptop.text() == "value"
    memory = find_memory_folder(laptop.home, os.getuid(), os.environ)
    assert not (memory / pod["metadata"]["uid"]).exists()
    assert memory.parent.stat().st_mode & 0o777 == 0o700
    await laptop.stop(kill=True)
    assert not memory.exists()
