"""Reading what to run, showing the plan, sending it."""

from __future__ import annotations

import difflib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trainwright.api.kinds import CLUSTER_TRAINING_RUNTIME, TRAINING_RUNTIME, TRAINJOB, find_kind
from trainwright.api.manifests import parse_manifests
from trainwright.api.wellknown import FRAMEWORK_LABEL, WORKING_DIR_ANNOTATION
from trainwright.base.errors import NotFound
from trainwright.base.objects import Object, annotations_of, dig, labels_of, name_of, namespace_of
from trainwright.cli.build import JobOptions, UsageError, build_trainjob
from trainwright.machinery.apply import apply_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from trainwright.machinery.client import HttpApi

MANAGER = "trainwright-cli"
DEFAULT_RUNTIME = "torch-distributed"


def read_manifest_file(file: str) -> list[Object]:
    """The objects of a file, or of standard input for `-`.

    Raises:
        UsageError: the file cannot be read. ManifestError: it is no manifest.
    """
    if file == "-":
        return parse_manifests(sys.stdin.buffer.read(), "standard input")
    try:
        return parse_manifests(Path(file).read_bytes(), file)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}") from error


async def gather_objects(
    api: HttpApi, file: str, options: JobOptions, namespace: str
) -> tuple[Sequence[Object], Object]:
    """What to send: objects that come first (runtimes, …), and the one TrainJob.

    Raises:
        UsageError: the file holds no TrainJob, or more than one.
    """
    if not file:
        runtime = options.runtime or DEFAULT_RUNTIME
        framework = await _find_framework(api, namespace, runtime)
        chosen = JobOptions(
            command=options.command,
            name=options.name,
            nodes=options.nodes,
            processes_per_node=options.processes_per_node,
            runtime=runtime,
            image=options.image,
            env=options.env,
        )
        job = build_trainjob(chosen, framework=framework, working_dir=find_working_dir())
        job["metadata"]["namespace"] = namespace
        return (), job
    if options.command:
        raise UsageError("give a job file with -f or a command after --, not both")
    objects = [_with_namespace(obj, namespace) for obj in read_manifest_file(file)]
    jobs = [obj for obj in objects if obj["kind"] == TRAINJOB.kind]
    if len(jobs) != 1:
        raise UsageError(f"{file}: {len(jobs)} TrainJobs were seen, one was wanted")
    job = _with_working_dir(jobs[0], file)
    return [obj for obj in objects if obj is not jobs[0]], job


def find_working_dir() -> Path:
    """The folder that the command was given in.

    Raises:
        UsageError: it is gone, or has a name that no object can hold.
    """
    try:
        return Path(os.getcwdb().decode())
    except FileNotFoundError as error:
        raise UsageError("the folder that you are in is gone; go to another one") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{os.getcwd()!a} has a name that is not UTF-8; rename it") from error


def _with_namespace(obj: Object, namespace: str) -> Object:
    kind = find_kind(obj["apiVersion"], obj["kind"])
    if kind is None or not kind.namespaced or namespace_of(obj):
        return obj
    return {**obj, "metadata": {**(obj.get("metadata") or {}), "namespace": namespace}}


def _with_working_dir(job: Object, file: str) -> Object:
    if WORKING_DIR_ANNOTATION in annotations_of(job):
        return job
    folder = find_working_dir() if file == "-" else Path(file).absolute().parent
    annotations = {**annotations_of(job), WORKING_DIR_ANNOTATION: str(folder)}
    return {**job, "metadata": {**(job.get("metadata") or {}), "annotations": annotations}}


async def _find_framework(api: HttpApi, namespace: str, runtime: str) -> str:
    try:
        found = await api.get(CLUSTER_TRAINING_RUNTIME, "", runtime)
    except NotFound:
        try:
            found = await api.get(TRAINING_RUNTIME, namespace, runtime)
        except NotFound:
            return ""  # admission names the runtimes that there are
    return labels_of(found).get(FRAMEWORK_LABEL, "")


def print_plan(console: Console, job: Object) -> None:
    """Show in a few lines what is about to run."""
    trainer = dig(job, "spec", "trainer", default={})
    nodes = trainer.get("numNodes")
    processes = trainer.get("numProcPerNode")
    command = [*(trainer.get("command") or []), *(trainer.get("args") or [])]
    shown = " ".join(command) or "the runtime's own"
    rows = [
        (
            "job",
            f"{namespace_of(job) or 'default'}/{name_of(job) or dig(job, 'metadata', 'generateName', default='')}",
        ),
        ("runtime", dig(job, "spec", "runtimeRef", "name", default="")),
        ("nodes", str(nodes) if nodes is not None else "the runtime's own"),
        ("processes", f"{processes} a node" if processes is not None else "chosen by the runtime"),
        ("command", shown if len(shown) <= 120 else shown[:117] + "..."),
    ]
    console.print("Plan")
    for label, value in rows:
        console.print(f"  {label:10}{value}")


async def send(api: HttpApi, before: Sequence[Object], job: Object) -> Object:
    """Apply what comes first, then create the TrainJob.

    Raises:
        UsageError: there is no runtime of that name; close names are listed.
    """
    for obj in before:
        kind = find_kind(obj["apiVersion"], obj["kind"])
        if kind is None:
            raise UsageError(f"{obj['apiVersion']} {obj['kind']}: a kind that we do not know")
        await apply_object(api, kind, obj, MANAGER)
    await _require_runtime(api, job)
    return await api.create(TRAINJOB, job, field_manager=MANAGER)


async def _require_runtime(api: HttpApi, job: Object) -> None:
    """Refuse a runtime that does not exist with the names that do, which admission cannot list."""
    name = dig(job, "spec", "runtimeRef", "name", default="")
    kind = dig(job, "spec", "runtimeRef", "kind", default=CLUSTER_TRAINING_RUNTIME.kind)
    known = {
        CLUSTER_TRAINING_RUNTIME.kind: CLUSTER_TRAINING_RUNTIME,
        TRAINING_RUNTIME.kind: TRAINING_RUNTIME,
    }
    if kind not in known or not name:
        return  # the schema and admission have words for that
    where = namespace_of(job) if known[kind].namespaced else ""
    names = sorted(name_of(runtime) for runtime in await api.list_all(known[kind], where))
    if name not in names:
        close = difflib.get_close_matches(name, names, n=1)
        hint = (
            f'did you mean "{close[0]}"?' if close else f"there are: {', '.join(names) or 'none'}"
        )
        raise UsageError(f'spec.runtimeRef: {kind} "{name}" not found; {hint}')
