"""The compiled shim in the data folder: one, and older ones only while something runs them."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from trainwright.node.instance import ensure_shim_program

if TYPE_CHECKING:
    from pathlib import Path


def test_old_programs_go_when_nothing_runs_them(tmp_path: Path) -> None:
    used, unused = tmp_path / "shim-cpython-1-1.pyc", tmp_path / "shim-cpython-1-2"
    used.write_text("input()")
    unused.mkdir()
    (unused / "__main__.pyc").touch()

    def top_of(program: Path) -> Path:
        return tmp_path / program.relative_to(tmp_path).parts[0]

    runner = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", "input()", str(used)], stdin=subprocess.PIPE
    )
    try:
        current = ensure_shim_program(tmp_path)
        assert sorted(tmp_path.glob("shim-*")) == sorted([used, top_of(current)])
    finally:
        runner.communicate(b"\n", timeout=60)
    assert ensure_shim_program(tmp_path) == current
    assert list(tmp_path.glob("shim-*")) == [top_of(current)]
