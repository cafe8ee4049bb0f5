"""Cases recorded from the Go controller of Kubeflow Trainer 2.3.0, played against our plane.

Lane `bare`: the TrainJob controller alone, the cases play the JobSet's part. Lane `gate`: the same
with progress on. Lane `live`: everything runs. The checker and its cases lie in `recorded/`; its README says what "same" means.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.planes import TestPlane, make_plane

RECORDED = Path(__file__).with_name("recorded")
PLAYED = (
    *range(1, 15),
    45,
    46,
    *range(53, 56),
    *range(57, 67),
    *range(68, 81),
    82,
    83,
    *range(86, 93),
)
"""Numbers of the cases whose policies have a plugin here; the others come with their frameworks."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def play(plane: TestPlane, *arguments: str) -> str:
    connection = plane.connection
    command = [
        *(sys.executable, str(RECORDED / "check.py")),
        *("--server", connection.server, f"--token={connection.token}", "--insecure"),
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=580, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1]


def test_the_trainjob_controller_alone_does_what_was_recorded(tmp_path: Path) -> None:
    only = [word for number in PLAYED for word in ("--only", f"{number:03}")]
    bare = "trainjob,garbage,namespace,expiry"
    with make_plane(tmp_path, "--no-progress", "--no-node", "--controllers", bare) as plane:
        assert play(plane, *only, "--lane", "bare").endswith("passed, 0 failed")


def test_the_whole_plane_does_what_was_recorded(tmp_path: Path) -> None:
    with make_plane(tmp_path, "--no-progress") as plane:
        assert play(plane, "--lane", "live").endswith("passed, 0 failed")


def test_pods_are_told_where_to_report_as_was_recorded(tmp_path: Path) -> None:
    bare = "trainjob,garbage,namespace,expiry"
    with make_plane(tmp_path, "--no-node", "--controllers", bare) as plane:
        assert play(plane, "--only", "094", "--lane", "gate") == "1 passed, 0 failed"
