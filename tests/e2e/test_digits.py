"""The main job: two nodes with two processes each, PyTorch over gloo, a real data set."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.support.planes import make_plane

EXAMPLE = Path("examples/digits/job.yaml").absolute()
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def find_accuracy(log: str) -> float:
    found = re.search(r"test accuracy (0\.\d+)", log)
    assert found, log
    return float(found[1])


def test_the_script_in_the_manifest_is_the_script_beside_it() -> None:
    code = next(iter(yaml.safe_load_all(EXAMPLE.read_text())))
    assert code["data"]["train.py"] == EXAMPLE.with_name("train.py").read_text()


def test_run_trains_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with make_plane(tmp_path, up=False) as plane:
        log = plane.cli("run", "-f", str(EXAMPLE))
        assert find_accuracy(log) >= 0.95
        for rank in range(4):
            assert re.search(rf"^node/[01] \| rank {rank} of 4 is here$", log, re.MULTILINE), log
        assert re.search(r"^node/0 \| test accuracy", log, re.MULTILINE)
        assert "nodes     2" in log
        assert "* Complete" in log
        assert plane.processes() == []


def test_two_jobs_with_the_same_ports_train_side_by_side_through_kubectl(tmp_path: Path) -> None:
    with make_plane(tmp_path) as plane:
        plane.kubectl("apply", "-f", str(EXAMPLE))
        _, job = yaml.safe_load_all(EXAMPLE.read_text())
        job["metadata"]["name"] = "digits-again"
        plane.apply(job)
        for name in ("digits", "digits-again"):
            plane.kubectl("wait", "--for=condition=Complete", f"trainjob/{name}", "--timeout=240s")
            log = plane.cli("logs", name)
            assert find_accuracy(log) >= 0.95
            assert log.count("of 4 is here") == 4
        plane.cli("rm", "digits", "digits-again")
        assert plane.pods() == []
        assert plane.pod_processes() == []
