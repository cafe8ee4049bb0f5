"""The commands of the page on the controller work against a real API server, with its flags alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster.api_lane import make_api_lane

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.api_lane import ApiLane

PAGE = Path("docs/controller.md").absolute()
SHOW = "kubectl get jobset first -o jsonpath='nodes {..parallelism}{\"\\n\"}'"
STOP = "kill -TERM %1; wait %1"
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def own_lane(tmp_path: Path) -> Iterator[ApiLane]:
    """A control plane of its own: the page registers webhooks for all namespaces."""
    with make_api_lane(tmp_path / "lane", "kube-controller-manager", "jobset") as lane:
        yield lane


def test_every_command_of_the_page_works(own_lane: ApiLane, tmp_path: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 5
    commands = "\n".join(["set -m", *blocks, SHOW, STOP])
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=tmp_path,
        env={"PATH": path, "HOME": str(tmp_path), "KUBECONFIG": str(own_lane.kubeconfig)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=240,
        check=False,
    )
    log = (tmp_path / "controller.log").read_text()
    assert done.returncode == 0, done.stdout + log
    assert "nodes 2\n" in done.stdout
    assert "Traceback" not in log
