"""The `trainwright` command: every verb, registered once."""

from __future__ import annotations

from typing import Annotated

import typer

from trainwright import __version__
from trainwright.cli.cmd_change import resume, rm, stop
from trainwright.cli.cmd_check import render, validate
from trainwright.cli.cmd_logs import logs, wait
from trainwright.cli.cmd_plane import down, status, up
from trainwright.cli.cmd_read import events, get, ls, runtimes
from trainwright.cli.cmd_run import run, submit

COMMANDS = {
    "Jobs": (run, submit, ls, get, logs, events, wait, stop, resume, rm),
    "Manifests": (validate, render, runtimes),
    "Laptop": (up, down, status),
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
    app()
