"""The smallest Jobs and pods that the tests of this folder need."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from trainwright.core.job.memory import JobMemory
from trainwright.core.job.observed import ObservedJob
from trainwright.core.job.pods import build_pod

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
STAMP = "2026-01-02T03:04:05Z"
EARLIER = "2026-01-02T03:00:00Z"


def make_job(*, status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "team", "uid": "ju", "resourceVersion": "5"},
        "spec": {
            "completions": 2,
            "parallelism": 2,
            "completionMode": "Indexed",
            "backoffLimit": 6,
            "suspend": False,
            "podReplacementPolicy": "TerminatingOrFailed",
            "template": {"spec": {"containers": [{"name": "c"}], "restartPolicy": "Never"}},
            **spec,
        },
        "status": {"startTime": EARLIER} if status is None else status,
    }


def make_pod(
    job: dict[str, Any],
    index: int = 0,
    *,
    phase: str = "Running",
    uid: str = "",
    code: int = 1,
    ended: str = EARLIER,
    deleting: bool = False,
    tracked: bool = True,
    ready: bool = False,
    failures: int = 0,
    restarts: int = 0,
) -> dict[str, Any]:
    uid = uid or f"p{index}"
    pod = build_pod(job, name=f"j-{uid}", index=index, failures=failures, ignored=0)
    pod["metadata"] |= {"uid": uid, "resourceVersion": "9", "creationTimestamp": EARLIER}
    if deleting:
        pod["metadata"] |= {"deletionTimestamp": STAMP, "deletionGracePeriodSeconds": 0}
    if not tracked:
        del pod["metadata"]["finalizers"]
    status: dict[str, Any] = {"phase": phase}
    if phase in ("Failed", "Succeeded"):
        exit_code = code if phase == "Failed" else 0
        state: dict[str, Any] = {"terminated": {"exitCode": exit_code, "finishedAt": ended}}
    else:
        state = {"running": {}}
    status["containerStatuses"] = [{"name": "c", "state": state, "restartCount": restarts}]
    if ready:
        status["conditions"] = [{"type": "Ready", "status": "True"}]
    return pod | {"status": status}


def observe(job: dict[str, Any], *pods: dict[str, Any]) -> ObservedJob:
    return ObservedJob(job=job, pods=pods)


def make_memory() -> JobMemory:
    """Suffixes count up: aaaa0, aaaa1, …"""
    numbers = iter(range(10))
    return JobMemory(lambda: f"aaaa{next(numbers)}")
