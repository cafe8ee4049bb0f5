"""Which API server a command talks to: a kubeconfig that was named, or the laptop's plane."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from trainwright.base.errors import Unreachable
from trainwright.machinery.client import HttpApi
from trainwright.machinery.kubeconfig import read_kubeconfig
from trainwright.plane.home import find_home
from trainwright.plane.process import find_plane

if TYPE_CHECKING:
    from pathlib import Path


def connect(kubeconfig: Path | None) -> HttpApi:
    """A client, to be used with `async with`.

    Raises:
        Unreachable: no kubeconfig was named and no plane runs.
        KubeconfigError: the kubeconfig cannot be used.
    """
    if kubeconfig is not None:
        return HttpApi(read_kubeconfig(kubeconfig), print_warning)
    home = find_home(os.environ)
    if find_plane(home) is None:
        raise Unreachable(
            f"no plane is running on {home.folder}; start one with `trainwright up --detach`, "
            "or name a cluster with --kubeconfig"
        )
    return HttpApi(read_kubeconfig(home.kubeconfig), print_warning)


def print_warning(text: str) -> None:
    """Tell what the server warns of, beside the output."""
    print(f"warning: {text}", file=sys.stderr)
