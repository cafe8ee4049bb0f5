"""The smallest JobSets and Jobs that the tests of this folder need."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from trainwright.core.jobset.children import build_job
from trainwright.core.jobset.names import replicated_jobs_of
from trainwright.core.jobset.observed import ObservedJobSet

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
STAMP = "2026-01-02T03:04:05Z"
EARLIER = "2026-01-02T03:00:00Z"


def make_replicated_job(name: str = "node", replicas: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "groupName": "default",
        "replicas": replicas,
        "template": {
            "spec": {
                "parallelism": 2,
                "completions": 2,
                "completionMode": "Indexed",
                "template": {"spec": {"containers": [{"name": "c"}], "restartPolicy": "Never"}},
            }
        },
        **fields,
    }


def make_jobset(
    *replicated_jobs: dict[str, Any], status: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "js", "namespace": "team", "uid": "u1", "resourceVersion": "7"},
        "spec": {
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            "successPolicy": {"operator": "All"},
            "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
            "replicatedJobs": list(replicated_jobs) or [make_replicated_job()],
            **spec,
        },
        "status": status or {},
    }


def make_job(
    jobset: dict[str, Any],
    name: str = "node",
    index: int = 0,
    *,
    ended: str = "",
    reason: str = "BackoffLimitExceeded",
    message: str = "m",
    at: str = EARLIER,
    attempt: int | None = None,
    **status: Any,
) -> dict[str, Any]:
    """The child Job as the JobSet makes it, ended (`Failed` or `Complete`) or not."""
    replicated_job = next(job for job in replicated_jobs_of(jobset) if job["name"] == name)
    job = build_job(jobset, replicated_job, index)
    job["metadata"] |= {"uid": f"{name}-{index}", "resourceVersion": "3"}
    if attempt is not None:
        job["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] = str(attempt)
    if ended:
        condition = {"type": ended, "status": "True", "lastTransitionTime": at}
        status["conditions"] = [condition | {"reason": reason, "message": message}]
    return job | {"status": status}


def observe(jobset: dict[str, Any], *jobs: dict[str, Any], **fields: Any) -> ObservedJobSet:
    return ObservedJobSet(jobset=jobset, jobs=jobs, **{"has_service": True, **fields})
