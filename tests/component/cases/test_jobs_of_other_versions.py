"""One job that cannot be read is shown as such; all others are listed.

The symptom: one broken object, or one whose runtime is gone, makes the listing of all jobs fail.
"""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

from tests.support.planes import TestPlane, make_runtime, make_trainjob

if TYPE_CHECKING:
    from typing import Any

TRAINJOBS = "trainjobs.trainer.kubeflow.org"


def rewrite_as_other_versions(plane: TestPlane) -> None:
    """Leave the store, of a plane that is down, as a later version may have left it."""
    connection = sqlite3.connect(plane.home.store / "objects.db")
    (data,) = connection.execute(
        "SELECT data FROM objects WHERE resource=? AND name='plain-0'", (TRAINJOBS,)
    ).fetchone()
    for number, (name, change) in enumerate((("grown", grow), ("later", move_on))):
        job = json.loads(data)
        job["metadata"] |= {"name": name, "uid": f"00000000-0000-4000-8000-00000000000{number}"}
        change(job)
        row = (TRAINJOBS, "default", name, int(job["metadata"]["resourceVersion"]))
        connection.execute(
            "INSERT INTO objects VALUES (?,?,?,?,?)", (*row, json.dumps(job).encode())
        )
    connection.commit()
    connection.close()


def grow(job: dict[str, Any]) -> None:
    """A field that this version does not know."""
    job["spec"]["checkpoint"] = {"every": "10m"}


def move_on(job: dict[str, Any]) -> None:
    """An API version that this version does not know, with another form of a field."""
    job["apiVersion"] = "trainer.kubeflow.org/v9"
    job["spec"]["runtimeRef"] = "trainer.kubeflow.org/plain-distributed"
    job["status"] = {}


def test_all_jobs_are_listed_with_a_note_on_those_that_cannot_be_read(plane: TestPlane) -> None:
    plane.apply(make_runtime("short-lived"))
    runtimes = ("plain-distributed", "plain-distributed", "short-lived")
    names = [f"plain-{number}" for number in range(3)]
    for name, runtime in zip(names, runtimes, strict=True):
        plane.apply(make_trainjob(name, ["true"], runtime=runtime, suspend=True))
    for name in names:
        plane.wait_condition(name, "Suspended")  # written after the runtime has been noted
    plane.kubectl("delete", "clustertrainingruntime", "short-lived")
    plane.cli("down")
    rewrite_as_other_versions(plane)
    plane.up()

    everyone = {*names, "grown", "later"}
    listed = plane.get("trainjobs")["items"]
    assert {job["metadata"]["name"] for job in listed} == everyone
    assert {job["apiVersion"] for job in listed} == {"trainer.kubeflow.org/v1alpha1"}
    rows = {line.split()[0]: line for line in plane.cli("ls", "-o", "wide").splitlines()[1:]}
    assert set(rows) == everyone
    assert {name for name, row in rows.items() if "this version does not know" in row} == {
        "grown",
        "later",
    }
    assert "spec.checkpoint" in rows["grown"]
    assert "spec.runtimeRef" in rows["later"]
    assert "does not know spec.checkpoint" in plane.cli("get", "grown")

    # The job whose runtime is gone runs on what it was made from.
    plane.cli("resume", "plain-2")
    plane.wait_condition("plain-2", "Complete")
    plane.cli("rm", *everyone)
    assert plane.get("trainjobs")["items"] == []
