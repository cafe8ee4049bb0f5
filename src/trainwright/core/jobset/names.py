"""Names that a JobSet gives: its Jobs, its subdomain, its coordinator's endpoint."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from trainwright.base.objects import dig, name_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainwright.base.objects import ObjectView

GLOBAL_REPLICAS = "jobset.sigs.k8s.io/global-replicas"
JOB_GLOBAL_INDEX = "jobset.sigs.k8s.io/job-global-index"
JOB_KEY = "jobset.sigs.k8s.io/job-key"
GROUP_NAME = "jobset.sigs.k8s.io/group-name"
GROUP_REPLICAS = "jobset.sigs.k8s.io/group-replicas"
JOB_GROUP_INDEX = "jobset.sigs.k8s.io/job-group-index"
COORDINATOR = "jobset.sigs.k8s.io/coordinator"
EXCLUSIVE_TOPOLOGY = "alpha.jobset.sigs.k8s.io/exclusive-topology"
NODE_SELECTOR_STRATEGY = "alpha.jobset.sigs.k8s.io/node-selector"


def replicated_jobs_of(jobset: ObjectView) -> Sequence[Mapping[str, Any]]:
    """`spec.replicatedJobs`, empty when absent."""
    jobs: Sequence[Mapping[str, Any]] = dig(jobset, "spec", "replicatedJobs", default=())
    return jobs


def replicas_of(replicated_job: Mapping[str, Any]) -> int:
    """Replicas, 1 when the schema's default is missing."""
    return int(dig(replicated_job, "replicas", default=1))


def build_job_name(jobset_name: str, replicated_job: str, index: int) -> str:
    """`<jobset>-<replicated job>-<index>`."""
    return f"{jobset_name}-{replicated_job}-{index}"


def build_job_key(namespace: str, job_name: str) -> str:
    """SHA-1 of `<namespace>/<job name>` in lower-case hex (a name, not a safeguard)."""
    return hashlib.sha1(f"{namespace}/{job_name}".encode(), usedforsecurity=False).hexdigest()


def has_dns_hostnames(jobset: ObjectView) -> bool:
    """Whether pods get a subdomain and the JobSet a headless Service (the default)."""
    return bool(dig(jobset, "spec", "network", "enableDNSHostnames", default=True))


def find_subdomain(jobset: ObjectView) -> str:
    """`spec.network.subdomain`, or the JobSet's name."""
    return str(dig(jobset, "spec", "network", "subdomain", default="") or name_of(jobset))


def build_coordinator_endpoint(jobset: ObjectView) -> str | None:
    """`<jobset>-<replicated job>-<job>-<pod>.<subdomain>`, when a coordinator is named."""
    coordinator = dig(jobset, "spec", "coordinator")
    if coordinator is None:
        return None
    job = build_job_name(
        name_of(jobset), coordinator["replicatedJob"], int(coordinator.get("jobIndex") or 0)
    )
    return f"{job}-{int(coordinator.get('podIndex') or 0)}.{find_subdomain(jobset)}"
