"""What every command promises: examples in its help, and machine output where it reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from trainwright.base.errors import Conflict, Unauthorized
from trainwright.cli.exits import describe_error
from trainwright.cli.main import COMMANDS, app
from trainwright.cli.timeline import render_event

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [command.__name__ for commands in COMMANDS.values() for command in commands]
READERS = ("ls", "get", "events", "render", "runtimes", "status")


@pytest.mark.parametrize("name", NAMES)
def test_help_ends_with_examples_of_the_command_itself(name: str) -> None:
    _, found, examples = CliRunner().invoke(app, [name, "--help"]).output.partition("Examples:")
    assert found
    assert f"trainwright {name}" in examples


@pytest.mark.parametrize("name", READERS)
def test_commands_that_read_take_every_output_format(name: str) -> None:
    text = CliRunner().invoke(app, [name, "--help"]).output
    assert "--output" in text
    assert "<table|wide|json|yaml|name>" in text


@pytest.mark.parametrize("output", ["table", "wide", "json", "yaml", "name"])
def test_status_of_a_plane_that_is_down_names_its_folder_and_fails(
    tmp_path: Path, output: str
) -> None:
    result = CliRunner().invoke(app, ["status", "--data-dir", str(tmp_path), "-o", output])
    assert result.exit_code == 1
    assert str(tmp_path) in result.output
    if output == "json":
        assert json.loads(result.output) == {"state": "down", "data": str(tmp_path)}


def test_a_wide_event_names_who_reported_it() -> None:
    event = {
        "eventTime": "2026-03-04T05:06:08.1Z",
        "type": "Normal",
        "reason": "Started",
        "note": "Started container node",
        "regarding": {"kind": "Pod", "name": "tj-node-0"},
        "reportingController": "node",
        "series": {"count": 3},
    }
    line = "2026-03-04T05:06:08  Normal   Pod/tj-node-0  Started (x3): Started container node"
    assert render_event(event, wide=False) == line
    assert render_event(event, wide=True) == f"{line}  [node]"


def test_a_refused_token_says_what_to_do() -> None:
    assert "trainwright status --kubeconfig-path" in describe_error(Unauthorized("Unauthorized"))
    assert describe_error(Conflict("changed meanwhile")) == "changed meanwhile"
