"""The commands of the getting-started page work, in their order, in one session."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.planes import make_plane

PAGE = Path("docs/getting-started.md").absolute()
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 7
    # The page puts the clone's environment first; the test's own is where the command is installed.
    commands = "".join(blocks).replace("$PWD/.venv/bin", str(Path(sys.executable).parent))
    with make_plane(tmp_path, up=False) as plane:
        environ = {key: value for key, value in plane.environ.items() if key != "KUBECONFIG"}
        done = subprocess.run(
            ["bash", "-euxo", "pipefail", "-c", commands],
            cwd=PAGE.parent.parent,
            env=environ,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=580,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        assert done.stdout.count("test accuracy 0.9") >= 2
        assert "node/2 | I am node 2" in done.stdout
        assert "node/0 | hello" in done.stdout
        assert plane.processes() == []
