"""`python -m trainwright.plane`: one plane in the foreground, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from trainwright import __version__
from trainwright.api.kinds import TRAINJOB
from trainwright.base.errors import TrainwrightError
from trainwright.base.objects import is_condition_true
from trainwright.machinery.clock import SystemClock
from trainwright.plane.home import Home
from trainwright.plane.plane import Plane, PlaneSettings
from trainwright.plane.process import (
    PlaneRecord,
    describe_full_disk,
    find_start,
    is_out_of_space,
    write_record,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

EXIT_REFUSED = 5
IDLE_CHECK_S = 10.0
"""How often a temporary plane asks whether a job is left."""


def main(arguments: Sequence[str]) -> int:
    """Run a plane; returns the exit code."""
    options = _parse(arguments)
    logging.basicConfig(
        level=logging.INFO if options.verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    settings = PlaneSettings(
        port=options.port,
        controllers=options.controllers,
        node=not options.no_node,
        isolation=options.isolation,
        progress=not options.no_progress,
    )
    home = Home(Path(options.data_dir))
    os.umask(0o077)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(home, settings, temporary=options.temporary, verbose=options.verbose))
    except (TrainwrightError, OSError) as error:
        said = describe_full_disk(home) if is_out_of_space(error) else str(error)
        print(f"error: {said}", file=sys.stderr)
        return EXIT_REFUSED
    return 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="trainwright.plane", description=__doc__)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--controllers", default="all")
    parser.add_argument("--no-node", action="store_true")
    parser.add_argument("--isolation", choices=("auto", "none", "namespace"), default="auto")
    parser.add_argument("--no-progress", action="store_true", help="Pods report no progress")
    parser.add_argument("--temporary", action="store_true", help="end once no job is left")
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args(arguments)


async def _serve(home: Home, settings: PlaneSettings, *, temporary: bool, verbose: bool) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    plane = Plane(home, settings, SystemClock())
    await plane.start()
    gc.collect()
    gc.freeze()  # what is there now stays: no pause of the collector needs to look at it again
    write_record(
        home,
        PlaneRecord(
            pid=os.getpid(),
            started=find_start(os.getpid()),
            server=plane.url,
            version=__version__,
            isolation=plane.isolation,
            temporary=temporary,
        ),
    )
    if verbose:
        print(f"plane is up at {plane.url}\nexport KUBECONFIG={home.kubeconfig}", flush=True)
    waits = [asyncio.create_task(stopping.wait()), asyncio.create_task(plane.wait_failed())]
    if temporary:
        waits.append(asyncio.create_task(_wait_without_jobs(plane)))
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    await plane.stop()
    home.record.unlink(missing_ok=True)


async def _wait_without_jobs(plane: Plane) -> None:
    """Return once there has been no unfinished job at two looks in a row."""
    quiet = 0
    while quiet < 2:
        await asyncio.sleep(IDLE_CHECK_S)
        jobs = plane.lister.list(TRAINJOB)
        busy = any(
            not is_condition_true(job, "Complete") and not is_condition_true(job, "Failed")
            for job in jobs
        )
        quiet = 0 if busy else quiet + 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
