"""When a replicated job may start: `dependsOn` and the deprecated `startupPolicy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.base.objects import dig
from trainwright.core.jobset.names import replicas_of, replicated_jobs_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainwright.base.objects import ObjectView


def is_in_order(jobset: ObjectView) -> bool:
    """Whether replicated jobs start one after the other."""
    return bool(dig(jobset, "spec", "startupPolicy", "startupPolicyOrder") == "InOrder")


def is_started(replicated_job: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether every Job of it has become ready or ended."""
    row = rows.get(replicated_job["name"])
    return row is not None and _started(row) == replicas_of(replicated_job)


def are_dependencies_met(
    jobset: ObjectView,
    replicated_job: Mapping[str, Any],
    rows: Mapping[str, Mapping[str, Any]],
) -> bool:
    """Whether all that `dependsOn` names is Ready or Complete, as it asks.

    Source: contract/jobset.md 1.7; a replicated job without a row yet is waited for.
    """
    replicas = {job["name"]: replicas_of(job) for job in replicated_jobs_of(jobset)}
    for dependency in replicated_job.get("dependsOn") or ():
        row = rows.get(dependency["name"])
        if row is None:
            return False
        done = row["succeeded"] if dependency["status"] == "Complete" else _started(row)
        if done != replicas.get(dependency["name"]):
            return False
    return True


def _started(row: Mapping[str, Any]) -> int:
    return int(row["ready"] + row["succeeded"] + row["failed"])
