from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.component.node.memory_api import make_container, make_pod
from trainwright.api.kinds import CONFIG_MAP
from trainwright.api.wellknown import JOBSET_NAME_LABEL, JOBSET_UID_LABEL
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
