"""Odd surroundings: folders, names and locales that a shell allows and nobody thinks of."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from tests.support.planes import TRAINWRIGHT, TestPlane

if TYPE_CHECKING:
    from pathlib import Path


def run_in(
    plane: TestPlane, folder: Path | bytes, *command: str | bytes, script: str = "", **environ: str
) -> tuple[int, str]:
    """Exit code and output of a `trainwright` command that is given in `folder`."""
    line = ["sh", "-c", f'{script} exec "$0" "$@"', str(TRAINWRIGHT), *command]
    done = subprocess.run(
        line,
        cwd=folder,
        env=plane.environ | environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=90,
        check=False,
    )
    text = done.stdout.decode(errors="replace")
    assert "Traceback" not in text, text
    return done.returncode, text


def test_a_script_runs_in_the_folder_that_it_was_submitted_from(
    plane: TestPlane, tmp_path: Path
) -> None:
    folder = tmp_path / "my pröject"
    folder.mkdir()
    (folder / "train.py").write_text("import os; print('ran in', os.getcwd())")
    options = ("--runtime", "plain-distributed")
    code, text = run_in(plane, folder, "run", *options, "--name", "in-folder", "train.py")
    assert (code, f"ran in {folder}" in text) == (0, True), text
    # The same in a locale without such letters.
    poor = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = ("run", *options, "--name", "in-poor", "--", "sh", "-c", "pwd; echo ü")
    code, text = run_in(plane, folder, *command, **poor)
    assert code == 0, text
    pod = plane.pods("in-poor")[0]["metadata"]
    assert pod["annotations"]["trainwright.dev/working-dir"] == str(folder)
    assert plane.cli("logs", "in-poor").endswith("ü\n")


def test_names_that_are_not_utf_8_are_refused(plane: TestPlane, tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/odd\xff"
    os.mkdir(odd)
    code, text = run_in(plane, odd, "submit", "--name", "odd", "--", "true")
    assert (code, "is not UTF-8" in text) == (3, True), text
    code, text = run_in(plane, tmp_path, "submit", "--name", "odd", "--", b"\xff")
    assert (code, "is not UTF-8" in text) == (2, True), text
    home = {"TRAINWRIGHT_HOME": os.fsdecode(odd)}
    code, text = run_in(plane, tmp_path, "up", "--detach", **home)
    assert (code, "is not UTF-8" in text) == (5, True), text
    assert plane.get("trainjob", "odd") is None


def test_a_folder_that_is_gone_is_said_to_be(plane: TestPlane, tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    leave = f"rmdir '{folder}';"
    code, text = run_in(plane, folder, "submit", "--", "true", script=leave)
    assert (code, "is gone" in text) == (3, True), text
    folder.mkdir()
    code, text = run_in(plane, folder, "status", script=leave, TRAINWRIGHT_HOME="relative")
    assert code == 5, text


def test_a_port_that_is_taken_is_named(plane: TestPlane, tmp_path: Path) -> None:
    port = plane.record.server.rpartition(":")[2]
    text = plane.cli("up", "--port", port, "--data-dir", str(tmp_path / "other"), code=5)
    assert f"127.0.0.1:{port}" in text
    assert "another port" in text


def test_a_closed_or_full_output_ends_no_command_in_a_traceback(
    plane: TestPlane, tmp_path: Path
) -> None:
    for closing, wanted in (("exec >&-;", 0), ("exec 2>&-;", 0), ("exec >/dev/full;", 5)):
        code, text = run_in(plane, tmp_path, "ls", script=closing)
        assert code == wanted, (closing, text)
