from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.component.node.memory_api import make_container, make_pod
from trainwright.api.kinds import CONFIG_MAP, POD
from trainwright.api.wellknown import JOBSET_NAME_LABEL, JOBSET_UID_LABEL
from trainwright.machinery.api import DeleteOptions
from trainwright.node.rsh import split_arguments

if TYPE_CHECKING:
    from tests.component.node.conftest import Laptop
    from trainwright.base.objects import Object


@pytest.mark.parametrize(
    ("arguments", "host", "words"),
    [
        (["-x", "-o", "ConnectionAttempts=10", "h.j", "orted", "-x"], "h.j", ["orted", "-x"]),
        (["-p22", "user@h", "a b"], "h", ["a b"]),
        (["-q"], "", []),
    ],
)
def test_options_of_ssh_are_dropped(arguments: list[str], host: str, words: list[str]) -> None:
    assert split_arguments(arguments) == (host, words)


def make_member(name: str, container: Object, **spec: object) -> Object:
    labels = {JOBSET_NAME_LABEL: "mp", JOBSET_UID_LABEL: "uid-of-mp"}
    return make_pod(
        container,
        name=name,
        metadata={"labels": labels},
        hostname=f"mp-{name}-0-0",
        subdomain="mp",
        **spec,
    )


async def test_launcher_reaches_each_host_without_sshd(laptop: Laptop, isolation: str) -> None:
    """What mpirun does, in shell: one remote shell for each line of the hostfile."""
    await laptop.start(isolation=isolation)
    hostfile = "mp-first-0-0.mp slots=1\nmp-second-0-0.mp slots=1\n"
    config = {"metadata": {"name": "hf", "namespace": "default"}, "data": {"hostfile": hostfile}}
    await laptop.api.create(CONFIG_MAP, config, field_manager="test")
    for name in ("first", "second"):
        worker = make_container(
            "",
            env=[{"name": "ROLE", "value": f"role-{name}"}],
            readinessProbe={"tcpSocket": {"port": 2222}},
        )
        worker["command"] = ["/usr/sbin/sshd", "-De"]
        await laptop.submit(make_member(name, worker))
    workers = ("first", "second")
    await laptop.wait_for(lambda: all(laptop.container(pod=w).get("ready") for w in workers))
    # A later plane finds stand-ins as such, and their keepers take its orders.
    await laptop.stop(kill=False)
    await laptop.start(isolation=isolation)
    await laptop.wait_for(lambda: all(laptop.container(pod=w).get("ready") for w in workers))
    launcher = make_container(
        "while read host rest; do "
        "$OMPI_MCA_plm_rsh_agent -x $OMPI_MCA_plm_rsh_args $host 'echo $ROLE on $HOSTNAME' "
        "< /dev/null || exit 1; done < $OMPI_MCA_orte_default_hostfile",
        env=[
            {"name": "OMPI_MCA_orte_default_hostfile", "value": "/etc/mpi/hostfile"},
            {"name": "OMPI_MCA_plm_rsh_args", "value": "-o ConnectionAttempts=10"},
        ],
        volumeMounts=[{"name": "hf", "mountPath": "/etc/mpi"}],
    )
    volumes = [{"name": "hf", "configMap": {"name": "hf"}}]
    await laptop.submit(make_member("launcher", launcher, volumes=volumes))
    await laptop.wait_phase("Succeeded", "Failed", name="launcher")
    assert laptop.text("launcher") == "role-first on mp-first-0-0\nrole-second on mp-second-0-0\n"


@pytest.fixture
async def shell(laptop: Laptop, monkeypatch: pytest.MonkeyPatch) -> str:
    """The remote shell of the job's launcher; one worker runs."""
    await laptop.start()
    await laptop.submit(make_member("worker", make_container("exec sleep 1000")))
    await laptop.wait_phase("Running", name="worker")
    monkeypatch.setenv("TRAINWRIGHT_JOB", "uid-of-mp")
    return str(laptop.home / "trainwright-rsh")


async def test_a_remote_command_has_its_callers_streams_and_exit_code(shell: str) -> None:
    process = await asyncio.create_subprocess_exec(
        shell,
        "mp-worker-0-0.mp",
        "cat; echo aside >&2; exit 7",
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )
    assert await process.communicate(b"said") == (b"said", b"aside\n")
    assert process.returncode == 7


async def test_a_remote_command_ends_with_who_asked_for_it(laptop: Laptop, shell: str) -> None:
    process = await asyncio.create_subprocess_exec(
        shell, "mp-worker-0-0.mp", "sleep 1000 & echo $!; wait", stdout=PIPE
    )
    assert process.stdout is not None
    started = Path("/proc") / (await process.stdout.readline()).decode().strip()
    assert started.exists()
    process.kill()
    await process.wait()
    await laptop.wait_for(lambda: not started.exists())
    assert laptop.phase("worker") == "Running"


async def test_what_a_remote_command_leaves_running_ends_with_its_pod(
    laptop: Laptop, shell: str
) -> None:
    """Launchers start daemons that cut themselves loose."""
    process = await asyncio.create_subprocess_exec(
        shell, "mp-worker-0-0.mp", "setsid sleep 1000 > /dev/null & echo $!", stdout=PIPE
    )
    said, _ = await process.communicate()
    daemon = Path("/proc") / said.decode().strip()
    assert process.returncode == 0
    assert daemon.exists()
    options = DeleteOptions(grace_period_s=1)
    await laptop.api.delete(POD, "default", "worker", options)
    await laptop.wait_for(lambda: not laptop.pod("worker"))
    assert not daemon.exists()


async def test_nobody_is_reached_who_does_not_run(laptop: Laptop, shell: str) -> None:
    process = await asyncio.create_subprocess_exec(shell, "mp-other-0-0.mp", "true", stderr=PIPE)
    _, said = await process.communicate()
    assert (process.returncode, b"mp-other-0-0.mp" in said) == (255, True)


def test_all_this_works_without_root(tmp_path: Path) -> None:
    """The same once more as a user without rights, who may not enter what is not his own."""
    if os.getuid() != 0:
        pytest.skip("the other tests are run without root already")
    become = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
    try:
        subprocess.run((*become, "true"), check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"nobody else can be played here: {error}")
    again = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not root")
    done = subprocess.run(
        (*become, *again, f"--basetemp={tmp_path / 'again'}", __file__),
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTEST")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
