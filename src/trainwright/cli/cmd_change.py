"""`stop`, `resume`, `rm`."""

from __future__ import annotations

from typing import Annotated

import typer

from trainwright.cli.exits import Exit, fail, run_command
from trainwright.cli.options import JobName, Kubeconfig, Namespace, Timeout


def stop(name: JobName, namespace: Namespace = "", kubeconfig: Kubeconfig = None) -> None:
    """Suspend a job: its Pods end, the job stays and `resume` starts it again.

    Examples:
      trainwright stop digits
    """
    _set_suspend(name, namespace, kubeconfig, suspend=True)


def resume(name: JobName, namespace: Namespace = "", kubeconfig: Kubeconfig = None) -> None:
    """Start a suspended job again.

    Examples:
      trainwright resume digits
    """
    _set_suspend(name, namespace, kubeconfig, suspend=False)


def _set_suspend(name: str, namespace: str, kubeconfig: Kubeconfig, *, suspend: bool) -> None:
    async def main() -> None:
        from trainwright.api.kinds import TRAINJOB
        from trainwright.cli.connection import connect
        from trainwright.cli.follow import ENDED
        from trainwright.cli.jobs import read_job
        from trainwright.cli.submit import MANAGER
        from trainwright.machinery.api import PatchType

        async with connect(kubeconfig) as api:
            where = namespace or api.connection.namespace
            view = await read_job(api, where, name)  # names close ones when there is none
            if view.state.name in ENDED:
                verb = "suspended" if suspend else "resumed"
                fail(
                    Exit.REFUSED,
                    f"TrainJob {where}/{name} is {view.state.name} and cannot be {verb}; "
                    "submit it again under another name",
                )
            await api.patch(
                TRAINJOB,
                where,
                name,
                {"spec": {"suspend": suspend}},
                type=PatchType.MERGE,
                field_manager=MANAGER,
            )
        print(f"TrainJob {where}/{name} is {'being suspended' if suspend else 'resumed'}")

    run_command(main)


def rm(
    names: Annotated[list[str], typer.Argument(help="Names of TrainJobs.", show_default=False)],
    namespace: Namespace = "",
    timeout: Timeout = 60,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not wait until all is gone.")
    ] = False,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Delete jobs and everything they made, and wait until it is gone.

    Examples:
      trainwright rm digits hello
      trainwright rm digits --no-wait
    """

    async def main() -> Exit:
        from trainwright.api.kinds import TRAINJOB
        from trainwright.cli.connection import connect
        from trainwright.cli.jobs import read_job
        from trainwright.cli.removal import wait_gone

        async with connect(kubeconfig) as api:
            where = namespace or api.connection.namespace
            for name in names:
                await read_job(api, where, name)
            for name in names:
                await api.delete(TRAINJOB, where, name)
            limit_s = 60 if timeout is None else timeout
            if not no_wait and not await wait_gone(api, where, names, limit_s):
                fail(
                    Exit.TIMEOUT,
                    f"not all Pods are gone after {limit_s:g} s; they are still ending",
                )
        for name in names:
            print(f"TrainJob {where}/{name} deleted")
        return Exit.OK

    run_command(main)
