"""`kill -9` of the plane at any moment: after the next start the job goes on, nothing is lost or doubled."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.planes import TestPlane, make_plane, make_runtime, make_trainjob, wait_until

if TYPE_CHECKING:
    from pathlib import Path

NODES = 2
# A rank writes a line when it starts and one when it ends; it waits for the file `go`.
SCRIPT = (
    "echo start $JOB_COMPLETION_INDEX >> {folder}/marks; "
    "until [ -e {folder}/go ]; do sleep 0.1; done; "
    "echo end $JOB_COMPLETION_INDEX >> {folder}/marks"
)


@pytest.fixture
def plane(tmp_path: Path) -> object:
    with make_plane(tmp_path) as running:
        yield running


def submit(plane: TestPlane, name: str = "survivor") -> None:
    plane.apply(make_trainjob(name, ["sh", "-c", SCRIPT.format(folder=plane.scratch)], nodes=NODES))


def marks(plane: TestPlane) -> Counter[str]:
    file = plane.scratch / "marks"
    return Counter(file.read_text().splitlines() if file.exists() else [])


def all_started(plane: TestPlane) -> bool:
    return sum(mark.startswith("start") for mark in marks(plane)) == NODES


def finish(plane: TestPlane) -> None:
    (plane.scratch / "go").touch()
    plane.wait_condition("survivor", "Complete")
    # Every rank started once and ended once: none was run twice beside itself or a second time.
    assert marks(plane) == {
        f"{word} {rank}": 1 for rank in range(NODES) for word in ("start", "end")
    }
    assert len(plane.get("jobsets")["items"]) == 1
    assert len(plane.pods("survivor")) == NODES
    plane.cli("rm", "survivor")
    wait_until(lambda: plane.pod_processes() == [], "no process is left")


def test_killed_right_after_the_submission(plane: TestPlane) -> None:
    submit(plane)
    plane.kill()
    plane.up()
    finish(plane)


def test_killed_while_the_job_runs(plane: TestPlane) -> None:
    submit(plane)
    wait_until(lambda: all_started(plane), "both ranks run")
    plane.kill()
    plane.up()
    finish(plane)


def test_the_job_ends_while_the_plane_is_down(plane: TestPlane) -> None:
    submit(plane)
    wait_until(lambda: all_started(plane), "both ranks run")
    plane.kill()
    (plane.scratch / "go").touch()
    wait_until(lambda: marks(plane).total() == 2 * NODES, "both ranks have ended")
    plane.up()
    finish(plane)


def test_killed_while_the_job_is_being_deleted(plane: TestPlane) -> None:
    submit(plane)
    wait_until(lambda: all_started(plane), "both ranks run")
    plane.cli("rm", "survivor", "--no-wait")
    plane.kill()
    plane.up()
    wait_until(lambda: plane.pods() == [], "its pods are gone")
    wait_until(lambda: plane.pod_processes() == [], "no process is left")
    assert plane.get("trainjobs")["items"] == []
    assert plane.get("jobsets")["items"] == []


def test_killed_while_the_job_is_being_suspended_and_resumed(plane: TestPlane) -> None:
    submit(plane)
    wait_until(lambda: all_started(plane), "both ranks run")
    plane.cli("stop", "survivor")
    plane.kill()
    plane.up()
    plane.wait_condition("survivor", "Suspended")
    wait_until(lambda: plane.pods() == [], "no pod is left")
    assert plane.pod_processes() == []
    (plane.scratch / "marks").unlink()
    plane.cli("resume", "survivor")
    plane.kill()
    plane.up()
    finish(plane)


def test_killed_while_the_job_is_started_again(plane: TestPlane) -> None:
    attempts = plane.scratch / "attempts"
    script = f"echo x >> {attempts}; [ $(wc -l < {attempts}) = 2 ]"
    plane.apply(
        make_runtime("stubborn", failurePolicy={"maxRestarts": 3}),
        make_trainjob("second", ["sh", "-c", script], runtime="stubborn"),
    )
    wait_until(attempts.exists, "the first attempt was made")
    plane.kill()
    plane.up()
    plane.wait_condition("second", "Complete")
    assert attempts.read_text() == "x\nx\n"
    assert plane.get("jobset", "second")["status"]["restarts"] == 1


def test_killed_again_and_again(plane: TestPlane) -> None:
    submit(plane)
    for _ in range(4):
        plane.kill()
        plane.up()
    wait_until(lambda: all_started(plane), "both ranks run")
    finish(plane)


def test_a_rank_that_was_killed_while_the_plane_was_down_fails_honestly(plane: TestPlane) -> None:
    submit(plane)
    wait_until(lambda: all_started(plane), "both ranks run")
    plane.kill()
    plane.kill_pods()
    plane.up()
    (plane.scratch / "go").touch()
    wait_until(
        lambda: plane.condition("survivor", "Complete") or plane.condition("survivor", "Failed"),
        "the job has ended one way or the other",
    )
    assert len(plane.get("jobsets")["items"]) == 1
