"""`ls`, `get`, `events`, `runtimes`: looking, without changing anything."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainwright.cli.exits import Exit, run_command
from trainwright.cli.options import (
    AllNamespaces,
    JobName,
    Kubeconfig,
    Namespace,
    Output,
    OutputFormat,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.cli.jobs import JobView


def ls(
    namespace: Namespace = "",
    all_namespaces: AllNamespaces = False,
    output: OutputFormat = Output.TABLE,
    state: Annotated[str, typer.Option(help="Only jobs in this state.", show_default=False)] = "",
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Print each change.")] = False,
    kubeconfig: Kubeconfig = None,
) -> None:
    """List TrainJobs, oldest first.

    Examples:
      trainwright ls
      trainwright ls -A --state running -o wide
    """

    async def main() -> None:
        import asyncio

        from trainwright.cli.connection import connect
        from trainwright.cli.jobs import read_jobs

        async with connect(kubeconfig) as api:
            where = "" if all_namespaces else (namespace or api.connection.namespace)
            shown: Sequence[Sequence[str]] | None = None
            while True:
                views = await read_jobs(api, where)
                views = [v for v in views if not state or v.state.name.lower() == state.lower()]
                if output in {Output.JSON, Output.YAML, Output.NAME}:
                    from trainwright.cli.printing import print_list

                    print_list([view.trainjob for view in views], output)
                else:
                    shown = _print_jobs(
                        views, shown, wide=output is Output.WIDE, spaces=all_namespaces
                    )
                if not watch:
                    return
                await asyncio.sleep(1)

    run_command(main)


def _print_jobs(
    views: Sequence[JobView], shown: Sequence[Sequence[str]] | None, *, wide: bool, spaces: bool
) -> Sequence[Sequence[str]]:
    """Print the jobs, or, after the first time, those that changed since `shown` (ages apart)."""
    import sys

    from trainwright.base.objects import dig, labels_of, namespace_of
    from trainwright.cli.printing import print_table, render_age

    now = datetime.now(UTC)
    rows = []
    for view in views:
        age = render_age(dig(view.trainjob, "metadata", "creationTimestamp", default=""), now)
        row = [view.name, view.state.name, view.nodes, view.progress, str(view.restarts), age]
        if spaces:
            row.insert(0, namespace_of(view.trainjob))
        if wide:
            queue = labels_of(view.trainjob).get("kueue.x-k8s.io/queue-name", "")
            row += [view.runtime, queue, "; ".join(text for text in (view.why, view.note) if text)]
        rows.append(row)
    headers = ["NAME", "STATE", "NODES", "PROGRESS", "RESTARTS", "AGE"]
    headers = [
        *(["NAMESPACE"] if spaces else []),
        *headers,
        *(["RUNTIME", "QUEUE", "REASON"] if wide else []),
    ]
    age_at = headers.index("AGE")
    keys = [[cell for at, cell in enumerate(row) if at != age_at] for row in rows]
    if not rows and shown is None:
        print("no TrainJobs here; `trainwright run -- python train.py` makes one", file=sys.stderr)
    changed = [row for row, key in zip(rows, keys, strict=True) if key not in (shown or ())]
    if changed:
        print_table(headers, changed)
        sys.stdout.flush()  # who watches through a pipe wants to see it now
    return keys


def get(
    name: JobName,
    namespace: Namespace = "",
    output: OutputFormat = Output.TABLE,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Show one TrainJob on a page: state and reason, nodes, conditions.

    Examples:
      trainwright get digits
      trainwright get digits -o yaml
    """

    async def main() -> None:
        from trainwright.cli.causes import read_causes
        from trainwright.cli.connection import connect
        from trainwright.cli.jobs import read_job
        from trainwright.cli.printing import print_object

        async with connect(kubeconfig) as api:
            view = await read_job(api, namespace or api.connection.namespace, name)
            if output in {Output.JSON, Output.YAML, Output.NAME}:
                print_object(view.trainjob, output)
            else:
                _print_page(view, await read_causes(api, view))

    run_command(main)


def _print_page(view: JobView, causes: Sequence[str]) -> None:
    from trainwright.base.objects import dig, name_of, namespace_of
    from trainwright.cli.logs import sort_pods
    from trainwright.cli.printing import print_table

    print(f"TrainJob {namespace_of(view.trainjob)}/{view.name}")
    print(f"  state     {view.state.name}" + (f" ({view.why})" if view.why else ""))
    print(f"  runtime   {view.runtime}")
    print(f"  nodes     {view.nodes}")
    print(f"  restarts  {view.restarts}")
    if view.note:
        print(f"  note      {view.note}")
    if view.progress:
        print(f"  progress  {view.progress}")
    for sentence in causes:
        print(f"  cause     {sentence}")
    if view.pods:
        print("\nPods")
        rows = [
            [name_of(pod), dig(pod, "status", "phase", default=""), str(_restarts(pod))]
            for pod in sort_pods(view.pods)
        ]
        print_table(["  NAME", "PHASE", "RESTARTS"], [["  " + row[0], *row[1:]] for row in rows])
    conditions = dig(view.trainjob, "status", "conditions", default=[])
    if conditions:
        print("\nConditions")
        for condition in (c for c in conditions if isinstance(c, dict)):
            print(
                f"  {condition['lastTransitionTime']}  {condition['type']}={condition['status']} "
                f"{condition['reason']}: {condition['message']}"
            )


def _restarts(pod: Any) -> int:
    from trainwright.base.objects import dig

    statuses = dig(pod, "status", "containerStatuses", default=[])
    return sum(int(status.get("restartCount", 0)) for status in statuses)


def events(
    name: JobName,
    namespace: Namespace = "",
    output: OutputFormat = Output.TABLE,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Print what happened to a TrainJob and to everything it made, in order of time.

    Examples:
      trainwright events digits
      trainwright events digits -o json
    """

    async def main() -> Exit:
        from trainwright.cli.connection import connect
        from trainwright.cli.timeline import print_timeline

        async with connect(kubeconfig) as api:
            where = namespace or api.connection.namespace
            return await print_timeline(api, where, name, output)

    run_command(main)


def runtimes(
    output: OutputFormat = Output.TABLE, namespace: Namespace = "", kubeconfig: Kubeconfig = None
) -> None:
    """List the runtimes that a TrainJob may name.

    Examples:
      trainwright runtimes
      trainwright runtimes -o name
    """

    async def main() -> None:
        from trainwright.api.kinds import CLUSTER_TRAINING_RUNTIME, TRAINING_RUNTIME
        from trainwright.base.objects import dig, labels_of, name_of
        from trainwright.cli.connection import connect
        from trainwright.cli.printing import print_list, print_table

        async with connect(kubeconfig) as api:
            where = namespace or api.connection.namespace
            found = [
                *await api.list_all(CLUSTER_TRAINING_RUNTIME),
                *await api.list_all(TRAINING_RUNTIME, where),
            ]
            if output in {Output.JSON, Output.YAML, Output.NAME}:
                print_list(found, output)
                return
            rows = [
                [
                    name_of(runtime),
                    runtime["kind"],
                    labels_of(runtime).get("trainer.kubeflow.org/framework", ""),
                    str(dig(runtime, "spec", "mlPolicy", "numNodes", default=1)),
                ]
                for runtime in found
            ]
            print_table(["NAME", "KIND", "FRAMEWORK", "NODES"], rows)

    run_command(main)
