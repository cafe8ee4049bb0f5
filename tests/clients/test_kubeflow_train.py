"""The public Kubeflow SDK, unmodified, trains a function on our plane."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.planes import make_plane, make_trainjob, wait_until

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "programs" / "kubeflow_train.py"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_a_function_trains_on_two_nodes(tmp_path: Path) -> None:
    python = ROOT / ".venv-kubeflow" / "bin" / "python"
    assert python.exists(), "the SDK's environment is missing; run scripts/env clients"
    with make_plane(tmp_path) as plane:
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
        assert plane.pod_processes() == []


REPORT = """
from kubeflow.trainer import update_trainjob_status
assert update_trainjob_status(
    progress_percent=42, estimated_remaining_seconds=7, metrics={"loss": 0.25}
)
"""


def test_the_progress_call_of_the_sdk_is_taken(tmp_path: Path) -> None:
    python = str(ROOT / ".venv-kubeflow" / "bin" / "python")
    with make_plane(tmp_path) as plane:
        plane.apply(make_trainjob("reports", [python, "-c", REPORT]))
        plane.wait_condition("reports", "Complete")
        status = wait_until(
            lambda: plane.get("trainjob", "reports")["status"].get("trainerStatus"), "its progress"
        )
        assert status["progressPercentage"] == 42
        assert status["estimatedRemainingSeconds"] == 7
        assert status["metrics"] == [{"name": "loss", "value": "0.25"}]
