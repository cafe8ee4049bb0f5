"""MPI on the laptop: the launcher reaches the other pods of its job without sshd.

A worker of an MPI job runs nothing but sshd, waiting for the launcher. Here all pods are processes of
one user, so that a stand-in waits in its place and `rsh`, given to the launcher as its remote shell,
runs each command in the surroundings of the pod that it names.
"""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

from trainwright.node import rsh

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

LAUNCHER_VARIABLES = frozenset(
    {
        "OMPI_MCA_orte_default_hostfile",
        "PRTE_MCA_prte_default_hostfile",
        "HYDRA_HOST_FILE",
        "I_MPI_HYDRA_HOST_FILE",
    }
)
"""A container with one of these launches an MPI job."""
STAND_IN = ("sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done")
"""Waits where sshd would, and ends by SIGTERM at once."""


def is_ssh_server(words: Sequence[str]) -> bool:
    """Whether a command is sshd, started directly."""
    return bool(words) and os.path.basename(words[0]) == "sshd"


def find_agent_variables(
    variables: Mapping[str, str], agent: Path, *, user: int, has_namespaces: bool
) -> dict[str, str]:
    """Variables that make a launcher use `agent` as its remote shell; none for other containers.

    Each MPI reads its own: Open MPI 4, Open MPI 5, MPICH's Hydra and Intel MPI's.
    """
    if not LAUNCHER_VARIABLES & set(variables):
        return {}
    found = {
        "OMPI_MCA_plm_rsh_agent": str(agent),
        "PRTE_MCA_plm_ssh_agent": str(agent),
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": str(agent),
        "I_MPI_HYDRA_BOOTSTRAP": "ssh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": str(agent),
    }
    if user == 0:
        found |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if not has_namespaces:
        # Hosts with one host name confuse Open MPI's shared memory: it crashes once data moves.
        found["OMPI_MCA_btl"] = "self,tcp"
    return {key: value for key, value in found.items() if key not in variables}


def ensure_agent(home: Path) -> Path:
    """The remote shell as one executable file, which is how launchers want it."""
    path = home / "trainwright-rsh"
    words = (sys.executable, "-I", "-S", rsh.__file__, str(home / "pods"))
    text = f'#!/bin/sh\nexec {" ".join(shlex.quote(word) for word in words)} "$@"\n'
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
        path.chmod(0o700)
    return path
