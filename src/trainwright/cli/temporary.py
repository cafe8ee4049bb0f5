"""The plane that `run` uses: the one that is up, or one that is started and stopped with it."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.base.errors import LocalRunError
from trainwright.cli.connection import print_warning
from trainwright.machinery.client import HttpApi
from trainwright.machinery.kubeconfig import read_kubeconfig
from trainwright.plane.home import find_home
from trainwright.plane.process import find_plane, start_plane, stop_plane

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@dataclass
class Plane:
    """A client, and whether the plane behind it is to be stopped."""

    api: HttpApi
    is_ours: bool = False

    def keep(self) -> None:
        """Leave the plane up: its job goes on. It ends by itself once no job is left."""
        self.is_ours = False


@asynccontextmanager
async def ensure_plane(
    kubeconfig: Path | None, isolation: str | None = None
) -> AsyncIterator[Plane]:
    """A plane for the time of the block.

    Raises:
        LocalRunError: it cannot be started, or one is up that isolates jobs otherwise.
    """
    if kubeconfig is not None:
        yield Plane(HttpApi(read_kubeconfig(kubeconfig), print_warning))
        return
    home = find_home(os.environ)
    running = find_plane(home)
    started = running is None
    if running is None:
        start_plane(home, ["--temporary", *(["--isolation", isolation] if isolation else [])])
    elif isolation not in {None, "auto", running.isolation}:
        raise LocalRunError(
            f"the plane that is up has isolation {running.isolation}, not {isolation}; "
            "stop it with `trainwright down`, or leave --isolation out"
        )
    plane = Plane(HttpApi(read_kubeconfig(home.kubeconfig), print_warning), is_ours=started)
    try:
        yield plane
    finally:
        if plane.is_ours:
            stop_plane(home)
