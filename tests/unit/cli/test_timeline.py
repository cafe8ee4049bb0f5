"""The time-line of a job goes on telling of pods that are no longer there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.cli.timeline import find_gone_pods

if TYPE_CHECKING:
    from trainwright.base.objects import Object

TRAINJOB: dict[str, object] = {"metadata": {"creationTimestamp": "2026-03-04T05:06:07Z"}}


def make_event(
    name: str, uid: str, *, kind: str = "Pod", at: str = "2026-03-04T05:06:08.1Z"
) -> Object:
    return {"eventTime": at, "regarding": {"kind": kind, "name": name, "uid": uid}}


def test_pods_of_its_jobs_count_and_nothing_else() -> None:
    events = [
        make_event("tj-node-0-1-abcde", "ours"),
        make_event("tj-node-0-12-x2z4v", "ours-too"),
        make_event("tj-node-0-1-abcde", "of-a-job-before", at="2026-03-04T05:06:06.9Z"),
        make_event("tj-node-0-1-abcde", "no-pod", kind="Job"),
        make_event("tj-node-0-1-abcde", ""),
        make_event("tj-node-0", "job"),
        make_event("tj-node-01-1-abcde", "of-another-job"),
        make_event("a-tj-node-0-1-abcde", "of-another-trainjob"),
    ]
    assert find_gone_pods(TRAINJOB, ["tj-node-0"], events) == {"ours", "ours-too"}
    assert find_gone_pods(TRAINJOB, [], events) == set()
