"""The `trainwright` command: every verb, registered once."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from trainwright import __version__
from trainwright.cli.cmd_change import resume, rm, stop
from trainwright.cli.cmd_check import render, validate
from trainwright.cli.cmd_controller import controller
from trainwright.cli.cmd_logs import logs, wait
from trainwright.cli.cmd_manifests import manifests
from trainwright.cli.cmd_plane import down, status, up
from trainwright.cli.cmd_read import events, get, ls, runtimes
from trainwright.cli.cmd_run import run, submit
from trainwright.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "Jobs": (run, submit, ls, get, logs, events, wait, stop, resume, rm),
    "Manifests": (validate, render, runtimes),
    "Laptop": (up, down, status),
    "Cluster": (controller, manifests),
}

app = typer.Typer(
    name="trainwright",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Launch and look after distributed training: one TrainJob, from a laptop to Kubernetes.",
)

for _panel, _commands in COMMANDS.items():
    for _command in _commands:
        app.command(rich_help_panel=_panel)(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"trainwright {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    # A closed one, as with `>&-`: the next file that is opened must not take its place.
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - as long as the program
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Whatever the locale is: a letter that it lacks must not end a command.
            stream.reconfigure(errors="backslashreplace")
    try:
        app(read_arguments(sys.argv[1:]))
    except OSError as error:
        # The machine said no: a folder that is gone, no memory, no descriptor.
        print(f"error: {error}", file=sys.stderr)
        sys.exit(Exit.REFUSED)


def read_arguments(arguments: Sequence[str]) -> list[str]:
    """The arguments as UTF-8, whatever the locale is; ends the program when one is not."""
    texts = []
    for argument in arguments:
        try:
            texts.append(os.fsencode(argument).decode())
        except UnicodeError:
            print(f"error: {argument!a} is not UTF-8, which no job can hold", file=sys.stderr)
            sys.exit(Exit.USAGE)
    return texts
