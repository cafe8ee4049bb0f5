"""When a JobSet has succeeded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.base.objects import dig
from trainwright.core.jobset.names import replicas_of, replicated_jobs_of
from trainwright.core.jobset.observed import replicated_job_of

if TYPE_CHECKING:
    from trainwright.base.objects import ObjectView
    from trainwright.core.jobset.observed import Buckets


def is_success_policy_met(jobset: ObjectView, buckets: Buckets) -> bool:
    """Whether enough Jobs of the targets succeeded; never with no successful Job at all.

    An absent policy counts as `All`: a replace may have dropped it.
    """
    if not buckets.successful:
        return False
    policy = dig(jobset, "spec", "successPolicy", default={})
    targets = policy.get("targetReplicatedJobs") or ()
    counted = [job for job in replicated_jobs_of(jobset) if not targets or job["name"] in targets]
    names = {job["name"] for job in counted}
    succeeded = sum(replicated_job_of(job) in names for job in buckets.successful)
    needed = 1 if policy.get("operator") == "Any" else sum(map(replicas_of, counted))
    return succeeded >= needed
