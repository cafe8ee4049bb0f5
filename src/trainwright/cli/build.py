"""From a command line to a TrainJob, without asking any server."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainwright.api.kinds import TRAINJOB
from trainwright.api.wellknown import WORKING_DIR_ANNOTATION
from trainwright.base.errors import TrainwrightError
from trainwright.core.names import SUFFIX_ALPHABET, SUFFIX_LENGTH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainwright.base.objects import Object

TORCH = "torch"
ENV_NAME = re.compile(r"[^=\x00-\x20\x7f]+")


class UsageError(TrainwrightError, ValueError):
    """Options that do not fit together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """What `run` and `submit` were asked for."""

    command: Sequence[str]
    name: str = ""
    nodes: int | None = None
    processes_per_node: int | None = None
    runtime: str = ""
    image: str = ""
    env: Sequence[str] = ()


def build_trainjob(options: JobOptions, *, framework: str, working_dir: Path) -> Object:
    """The TrainJob for a command; `framework` is the runtime's label.

    Raises:
        UsageError: there is no command, or an option cannot be read.
    """
    if not options.command:
        raise UsageError(
            "nothing to run: give a job file with -f, or a command after --, "
            "such as `trainwright run -- python train.py`"
        )
    trainer: Object = {"command": list(build_command(options.command, framework))}
    if options.image:
        trainer["image"] = options.image
    if options.nodes is not None:
        trainer["numNodes"] = options.nodes
    if options.processes_per_node is not None:
        trainer["numProcPerNode"] = options.processes_per_node
    if options.env:
        trainer["env"] = [
            {"name": name, "value": value} for name, value in parse_env(options.env).items()
        ]
    return {
        "apiVersion": TRAINJOB.api_version,
        "kind": TRAINJOB.kind,
        "metadata": {
            "name": options.name or build_name(options.command),
            "annotations": {WORKING_DIR_ANNOTATION: str(working_dir)},
        },
        "spec": {"runtimeRef": {"name": options.runtime}, "trainer": trainer},
    }


def build_command(command: Sequence[str], framework: str) -> Sequence[str]:
    """The command as the runtime's framework starts it.

    A Python script under a torch runtime is started by torchrun, which makes the processes of a node;
    everything else is run as it is.
    """
    first, *rest = command
    if framework == TORCH:
        if first.endswith(".py"):
            return ("torchrun", first, *rest)
        if Path(first).name in {"python", "python3"} and rest:
            if rest[0] == "-m" or not rest[0].startswith("-"):
                return ("torchrun", *rest)
            # Python's own options, such as -u or -c: torchrun has others of these names.
            return ("torchrun", "--no-python", *command)
    if first.endswith(".py"):
        return ("python", first, *rest)
    return tuple(command)


def build_name(command: Sequence[str]) -> str:
    """A name from the script's, with a random end."""
    word = next((part for part in command if part.endswith(".py")), command[0])
    stem = re.sub(r"[^a-z0-9]+", "-", Path(word).stem.lower()).strip("-")[:30].strip("-")
    if not stem or not stem[0].isalpha():
        stem = f"job-{stem}".strip("-")
    return f"{stem}-{random_suffix()}"


def random_suffix(length: int = SUFFIX_LENGTH) -> str:
    """Random letters for a generated name."""
    return "".join(secrets.choice(SUFFIX_ALPHABET) for _ in range(length))


def parse_env(assignments: Sequence[str]) -> Mapping[str, str]:
    """Read `NAME=value` options; the last of a name wins.

    Raises:
        UsageError: one has no `=` or no name.
    """
    env: dict[str, str] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not ENV_NAME.fullmatch(name):
            raise UsageError(f'--env "{assignment}": NAME=value was wanted')
        env[name] = value
    return env
