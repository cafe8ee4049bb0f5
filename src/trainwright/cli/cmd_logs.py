"""`logs` and `wait`."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from trainwright.cli.exits import Exit, run_command
from trainwright.cli.options import JobName, Kubeconfig, Namespace, Ranks, Timeout


def logs(
    name: JobName,
    namespace: Namespace = "",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job ends.")
    ] = False,
    ranks: Ranks = "",
    previous: Annotated[bool, typer.Option(help="The run before the last restart.")] = False,
    tail: Annotated[
        int | None, typer.Option(help="Only the last lines of each node.", min=0)
    ] = None,
    since: Annotated[int | None, typer.Option(help="Only the last seconds.", min=1)] = None,
    timestamps: Annotated[bool, typer.Option(help="Begin each line with its time.")] = False,
    no_prefix: Annotated[
        bool, typer.Option("--no-prefix", help="Lines only, without the node.")
    ] = False,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Print the logs of a job's nodes, merged, each line with its node in front.

    Examples:
      trainwright logs digits -f
      trainwright logs digits --ranks 0,3 --tail 20
    """

    async def main() -> Exit:
        from trainwright.cli.causes import read_causes
        from trainwright.cli.connection import connect
        from trainwright.cli.follow import JobFollower
        from trainwright.cli.jobs import read_job
        from trainwright.cli.logs import explain_no_log, read_lines, read_ranks, sort_pods
        from trainwright.cli.printing import make_console

        chosen = read_ranks(ranks)
        async with connect(kubeconfig) as api:
            where = namespace or api.connection.namespace
            view = await read_job(api, where, name)
            if follow:
                follower = JobFollower(api, make_console(), ranks=chosen, prefixes=not no_prefix)
                return await follower.follow(where, name)
            nodes = int(view.nodes.partition("/")[2] or 1)
            pods = sort_pods([pod for pod in view.pods if chosen.admits(pod, nodes)])
            if not pods:
                print(explain_no_log(view, chosen), file=sys.stderr)
                for sentence in [] if view.pods else await read_causes(api, view):
                    print(f"  {sentence}", file=sys.stderr)
            for pod in pods:
                async for line in read_lines(
                    api, pod, previous=previous, tail=tail, since_s=since, timestamps=timestamps
                ):
                    print(line.text if no_prefix else f"{line.prefix} | {line.text}")
            return Exit.OK

    run_command(main)


class Wanted(StrEnum):
    """States that `wait` knows."""

    COMPLETE = "complete"
    FAILED = "failed"
    RUNNING = "running"
    SUSPENDED = "suspended"


def wait(
    name: JobName,
    namespace: Namespace = "",
    for_: Annotated[Wanted, typer.Option("--for", help="The state to wait for.")] = Wanted.COMPLETE,
    timeout: Timeout = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Wait for a state. Exit 0 when it is reached, 1 when the job ended otherwise, 124 at the time limit.

    Examples:
      trainwright wait digits
      trainwright wait digits --for running --timeout 60
    """

    async def main() -> Exit:
        from trainwright.cli.connection import connect
        from trainwright.cli.follow import wait_for

        async with connect(kubeconfig) as api:
            where = namespace or api.connection.namespace
            code, sentence = await wait_for(api, where, name, for_, timeout)
            print(sentence)
            return code

    run_command(main)
