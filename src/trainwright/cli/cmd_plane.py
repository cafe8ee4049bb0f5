"""`up`, `down`, `status`: the laptop's own control plane."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainwright.cli.exits import Exit, fail
from trainwright.cli.options import ISOLATION_OPTION, Isolation, Output, OutputFormat

if TYPE_CHECKING:
    from trainwright.base.objects import Object
    from trainwright.plane.home import Home
    from trainwright.plane.process import PlaneRecord

DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Folder of the plane; TRAINWRIGHT_HOME or your data folder by default.",
        file_okay=False,
    ),
]

ISOLATION_MEANINGS = {
    "none": "pods share the machine's network; paths, names and ports are rewritten",
    "mounts": "mounts and host names of a pod's own; the machine's network, names and ports rewritten",
    "namespace": "each job has a network of its own, without a way out",
}


def up(
    data_dir: DataDir = None,
    port: Annotated[
        int, typer.Option(help="Port on 127.0.0.1; 0 takes a free one.", min=0, max=65535)
    ] = 0,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Go on in the background.")
    ] = False,
    controllers: Annotated[
        str,
        typer.Option(
            help="Which controllers run: all, or names with commas; -name leaves one out."
        ),
    ] = "all",
    no_node: Annotated[
        bool, typer.Option("--no-node", help="Run no Pods here: API and controllers only.")
    ] = False,
    no_progress: Annotated[
        bool, typer.Option("--no-progress", help="Do not tell Pods where to report progress.")
    ] = False,
    isolation: Annotated[Isolation, ISOLATION_OPTION] = Isolation.AUTO,
) -> None:
    """Start the laptop's control plane: API server, controllers and node in one process.

    Examples:
      trainwright up --detach
      kubectl --kubeconfig "$(trainwright status --kubeconfig-path)" get trainjobs
    """
    from trainwright.base.errors import TrainwrightError
    from trainwright.plane.home import find_home
    from trainwright.plane.process import find_plane, start_plane

    home = find_home(os.environ, data_dir)
    running = find_plane(home)
    if running is not None:
        fail(
            Exit.REFUSED,
            f"a plane runs on {home.folder} already (process {running.pid}, {running.server}); "
            "stop it with `trainwright down`, or choose another --data-dir",
        )
    arguments = [
        "--port",
        str(port),
        f"--controllers={controllers}",  # a list may begin with a minus
        *(["--no-node"] if no_node else []),
        *(["--no-progress"] if no_progress else []),
        "--isolation",
        isolation,
    ]
    if detach:
        try:
            record = start_plane(home, arguments)
        except TrainwrightError as error:
            fail(Exit.REFUSED, str(error))
        print(f"plane is up at {record.server}")
        print(f"export KUBECONFIG={home.kubeconfig}")
        return
    from trainwright.plane.__main__ import main

    raise typer.Exit(main(["--data-dir", str(home.folder), "--verbose", *arguments]))


def down(data_dir: DataDir = None) -> None:
    """Stop the laptop's control plane and the Pods it runs. Objects stay for the next `up`.

    Examples:
      trainwright down
    """
    from trainwright.base.errors import TrainwrightError
    from trainwright.plane.home import find_home
    from trainwright.plane.process import stop_plane

    home = find_home(os.environ, data_dir)
    try:
        stopped = stop_plane(home)
    except TrainwrightError as error:
        fail(Exit.REFUSED, str(error))
    print("plane is down" if stopped else f"no plane was running on {home.folder}")


def status(
    data_dir: DataDir = None,
    kubeconfig_path: Annotated[
        bool, typer.Option("--kubeconfig-path", help="Print the path of the kubeconfig only.")
    ] = False,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Say whether the plane is up, where, and what it runs. Exit 0 when it is, 1 when not.

    Examples:
      trainwright status
      export KUBECONFIG="$(trainwright status --kubeconfig-path)"
      trainwright status -o json
    """
    from trainwright.plane.home import find_home
    from trainwright.plane.process import find_plane

    home = find_home(os.environ, data_dir)
    if kubeconfig_path:
        print(home.kubeconfig)
        return
    record = find_plane(home)
    if output in {Output.JSON, Output.YAML}:
        from trainwright.cli.printing import print_object

        print_object(_describe(home, record), output)
    elif output is Output.NAME:
        print(home.folder)
    elif record is None:
        print(f"plane      down ({home.folder})")
    else:
        print(f"plane      up, process {record.pid}, version {record.version}")
        print(f"server     {record.server}")
        print(f"data       {home.folder}")
        print(f"kubeconfig {home.kubeconfig}")
        print(f"isolation  {record.isolation} ({ISOLATION_MEANINGS[record.isolation]})")
    if record is None:
        raise typer.Exit(Exit.JOB_FAILED)


def _describe(home: Home, record: PlaneRecord | None) -> Object:
    """What `status` says, under names that scripts can count on."""
    found: Object = {"state": "down" if record is None else "up", "data": str(home.folder)}
    if record is not None:
        found |= {
            "process": record.pid,
            "version": record.version,
            "server": record.server,
            "kubeconfig": str(home.kubeconfig),
            "isolation": record.isolation,
        }
    return found
