"""The official Python client, unmodified, against a whole plane with running Pods."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.planes import TestPlane, make_plane, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(300)
ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "programs" / "kubernetes_plane.py"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestPlane]:
    folder = tmp_path_factory.mktemp("plane")
    with make_plane(folder) as running:
        # Started again, so that there are resourceVersions that no watch can begin at any more.
        running.cli("down")
        running.up()
        yield running


@pytest.mark.parametrize("environment", [".venv-kubernetes35", ".venv-kubernetes37"])
def test_unmodified_client(plane: TestPlane, environment: str) -> None:
    python = ROOT / environment / "bin" / "python"
    assert python.exists(), f"{environment} is missing; run scripts/env clients"
    done = subprocess.run(
        [str(python), str(PROGRAM)],
        env=plane.environ,
        cwd=plane.scratch,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    wait_until(lambda: plane.pod_processes() == [], "no process of a pod is left")
