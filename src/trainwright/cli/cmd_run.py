"""`run` and `submit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trainwright.cli.exits import Exit, fail, run_command
from trainwright.cli.options import (
    ISOLATION_OPTION,
    Isolation,
    Kubeconfig,
    Namespace,
    Output,
    OutputFormat,
    Ranks,
)

if TYPE_CHECKING:
    from rich.console import Console

    from trainwright.base.objects import Object
    from trainwright.cli.build import JobOptions
    from trainwright.cli.logs import RankFilter
    from trainwright.machinery.client import HttpApi

Command = Annotated[
    list[str] | None, typer.Argument(help="Command and arguments, after --.", show_default=False)
]
File = Annotated[str, typer.Option("--filename", "-f", help="A manifest, or - for standard input.")]
Name = Annotated[
    str, typer.Option("--name", help="Name of the job; made from the script's by default.")
]
Nodes = Annotated[int | None, typer.Option("--nodes", help="Number of nodes.", min=1)]
Processes = Annotated[
    int | None, typer.Option("--nproc-per-node", help="Processes on each node.", min=1)
]
Runtime = Annotated[
    str, typer.Option("--runtime", help="The runtime; torch-distributed by default.")
]
Image = Annotated[str, typer.Option("--image", help="Container image, for clusters.")]
Env = Annotated[list[str] | None, typer.Option("--env", "-e", help="NAME=value, may be repeated.")]
DryRun = Annotated[
    str, typer.Option("--dry-run", help="`client` prints the job, `server` has it checked too.")
]


def run(
    command: Command = None,
    file: File = "",
    name: Name = "",
    nodes: Nodes = None,
    nproc_per_node: Processes = None,
    runtime: Runtime = "",
    image: Image = "",
    env: Env = None,
    namespace: Namespace = "",
    ranks: Ranks = "",
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Submit, and do not follow.")
    ] = False,
    dry_run: DryRun = "",
    isolation: Annotated[Isolation | None, ISOLATION_OPTION] = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Run a job and follow it to its end; the exit code mirrors the job's.

    Starts the laptop's plane when none is up, and stops it again at the end. Ctrl-C leaves the job
    running.

    Examples:
      trainwright run -f job.yaml
      trainwright run --nodes 2 --nproc-per-node 2 train.py
      trainwright run --runtime plain-distributed -- ./simulate --steps 100
    """
    options = _options(command, name, nodes, nproc_per_node, runtime, image, env)
    _check_dry_run(dry_run)
    from trainwright.cli.logs import read_ranks

    chosen = read_ranks(ranks)

    async def main() -> Exit:
        import asyncio

        from trainwright.cli.temporary import ensure_plane

        async with ensure_plane(kubeconfig, isolation) as plane, plane.api as api:
            from trainwright.cli.printing import make_console

            console = make_console()
            job = await _prepare_and_send(api, file, options, namespace, dry_run, console)
            if job is None:
                return Exit.OK
            if detach:
                plane.keep()
                _print_useful(console, job)
                return Exit.OK
            try:
                return await _follow(api, console, job, chosen)
            except asyncio.CancelledError:
                plane.keep()
                _say_detached(console, job)
                raise

    run_command(main)


def submit(
    command: Command = None,
    file: File = "",
    name: Name = "",
    nodes: Nodes = None,
    nproc_per_node: Processes = None,
    runtime: Runtime = "",
    image: Image = "",
    env: Env = None,
    namespace: Namespace = "",
    output: OutputFormat = Output.NAME,
    dry_run: DryRun = "",
    kubeconfig: Kubeconfig = None,
) -> None:
    """Submit a job and print its name. A plane or cluster must be up.

    Examples:
      trainwright submit -f job.yaml
      trainwright submit --nodes 4 train.py
    """
    options = _options(command, name, nodes, nproc_per_node, runtime, image, env)
    _check_dry_run(dry_run)

    async def main() -> Exit:
        from trainwright.cli.connection import connect
        from trainwright.cli.printing import print_object

        async with connect(kubeconfig) as api:
            job = await _prepare_and_send(api, file, options, namespace, dry_run, None)
            if job is not None:
                print_object(job, Output.NAME if output is Output.TABLE else output)
        return Exit.OK

    run_command(main)


def _options(
    command: list[str] | None,
    name: str,
    nodes: int | None,
    processes: int | None,
    runtime: str,
    image: str,
    env: list[str] | None,
) -> JobOptions:
    from trainwright.cli.build import JobOptions

    return JobOptions(
        command=tuple(command or ()),
        name=name,
        nodes=nodes,
        processes_per_node=processes,
        runtime=runtime,
        image=image,
        env=tuple(env or ()),
    )


def _check_dry_run(dry_run: str) -> None:
    if dry_run not in {"", "client", "server"}:
        fail(Exit.USAGE, f'--dry-run "{dry_run}": client or server was wanted')


async def _prepare_and_send(
    api: HttpApi,
    file: str,
    options: JobOptions,
    namespace: str,
    dry_run: str,
    console: Console | None,
) -> Object | None:
    from trainwright.api.kinds import TRAINJOB
    from trainwright.cli.printing import print_object
    from trainwright.cli.submit import MANAGER, gather_objects, print_plan, send

    where = namespace or api.connection.namespace
    before, job = await gather_objects(api, file, options, where)
    if dry_run == "client":
        print_object(job, Output.YAML)
        return None
    if dry_run == "server":
        print_object(
            await api.create(TRAINJOB, job, field_manager=MANAGER, dry_run=True), Output.YAML
        )
        return None
    if console is not None:
        print_plan(console, job)
    return await send(api, before, job)


async def _follow(api: HttpApi, console: Console, job: Object, ranks: RankFilter) -> Exit:
    from trainwright.base.objects import name_of, namespace_of
    from trainwright.cli.follow import JobFollower

    follower = JobFollower(api, console, ranks=ranks)
    return await follower.follow(namespace_of(job), name_of(job))


def _say_detached(console: Console, job: Object) -> None:
    console.print("\ndetached; the job goes on")
    _print_useful(console, job)


def _print_useful(console: Console, job: Object) -> None:
    from trainwright.base.objects import name_of, namespace_of

    where = namespace_of(job)
    suffix = "" if where == "default" else f" -n {where}"
    console.print(f"job {where}/{name_of(job)} is submitted")
    for verb, flags, meaning in (
        ("logs", " -f", "follow it"),
        ("get", "", "how it is"),
        ("stop", "", "suspend it"),
        ("rm", "", "delete it"),
    ):
        console.print(f"  trainwright {verb} {name_of(job)}{flags}{suffix}".ljust(52) + meaning)
