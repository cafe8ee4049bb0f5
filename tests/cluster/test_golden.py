"""The recorded cases against our manager on a real API server, webhooks and all.

Lane `bare`: the cases play the JobSet's part. `gate`: with progress on. `live`: the real JobSet and
Job controllers, the real scheduler, and a node on which Pods end by themselves.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cluster.api_lane import ApiLane, make_api_lane
from tests.cluster.managers import running_manager
from tests.golden.test_live import PLAYED, RECORDED
from trainwright.api.crds import build_all_crds
from trainwright.api.kinds import TRAINJOB

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def play(lane: ApiLane, *arguments: str) -> str:
    command = [
        *(sys.executable, str(RECORDED / "check.py")),
        *("--server", lane.url, f"--token={lane.token}", "--insecure"),
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=880, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiLane]:
    """A control plane that knows JobSets and pod groups and has nobody to act on them."""
    folder = tmp_path_factory.mktemp("bare")
    with make_api_lane(folder, "kube-controller-manager") as lane:
        lane.install_crds([c for c in build_all_crds() if c["spec"]["group"] != TRAINJOB.group])
        yield lane


def test_the_manager_alone_does_what_was_recorded(bare: ApiLane) -> None:
    only = [word for number in PLAYED for word in ("--only", f"{number:03}")]
    with running_manager(bare):
        assert play(bare, *only, "--lane", "bare").endswith("passed, 0 failed")


def test_pods_are_told_where_to_report_as_was_recorded(bare: ApiLane) -> None:
    with running_manager(bare, "--feature-gates", "TrainJobStatus=true"):
        assert play(bare, "--only", "094", "--lane", "gate") == "1 passed, 0 failed"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiLane]:
    """A control plane whose Pods run on a node that only pretends."""
    folder = tmp_path_factory.mktemp("live")
    servers = ("kube-controller-manager", "kube-scheduler", "jobset")
    with make_api_lane(folder, *servers) as lane:
        lane.install_crds([crd for crd in build_all_crds() if "scheduling" in crd["spec"]["group"]])
        lane.start_kwok()
        yield lane


def test_the_whole_cluster_does_what_was_recorded(live: ApiLane) -> None:
    with running_manager(live):
        assert play(live, "--lane", "live").endswith("passed, 0 failed")
