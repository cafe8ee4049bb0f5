"""The JobSet controller of the embedded plane: observes; `core.jobset` decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.conditions import JOBSET_CONTROLLER_NAME
from trainwright.api.kinds import JOB, JOBSET, PERSISTENT_VOLUME_CLAIM, SERVICE
from trainwright.base.objects import is_controlled_by, name_of, namespace_of, uid_of
from trainwright.controllers.ownership import controlling
from trainwright.controllers.reconciler import Outcome, Watch
from trainwright.core.jobset.children import build_claims
from trainwright.core.jobset.names import (
    build_job_name,
    find_subdomain,
    replicas_of,
    replicated_jobs_of,
)
from trainwright.core.jobset.observed import ObservedJobSet
from trainwright.core.jobset.plan import plan_jobset
from trainwright.core.plan import Create, Event, Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.base.errors import ApiError
    from trainwright.base.objects import Object
    from trainwright.base.times import Clock
    from trainwright.core.plan import Action
    from trainwright.machinery.api import Lister
    from trainwright.machinery.workqueue import Key


_FAILURE_REASONS = {
    JOB: "JobCreationFailed",
    SERVICE: "HeadlessServiceCreationFailed",
    PERSISTENT_VOLUME_CLAIM: "PVCCreationFailed",
}


class JobSetController:
    """Reconciles JobSets."""

    name = JOBSET_CONTROLLER_NAME
    manager = "jobset"

    def __init__(self, *, lister: Lister, clock: Clock) -> None:
        self._lister = lister
        self._clock = clock

    def watches(self) -> Sequence[Watch]:
        """JobSets, their Jobs and their Services."""
        return (
            Watch(JOBSET),
            Watch(JOB, controlling(JOBSET)),
            Watch(SERVICE, controlling(JOBSET)),
        )

    async def reconcile(self, key: Key) -> Outcome | None:
        """Observe one JobSet and plan."""
        jobset = self._lister.get(JOBSET, key.namespace, key.name)
        if jobset is None:
            return None
        return Outcome(jobset, plan_jobset(self.observe(jobset), self._clock.now()))

    def plan_failure(self, outcome: Outcome, action: Action, error: ApiError) -> Plan:
        """Say which child the server refused, and why."""
        del outcome
        reason = _FAILURE_REASONS.get(action.kind) if isinstance(action, Create) else None
        if reason is None:
            return Plan()
        return Plan(events=(Event(type="Warning", reason=reason, note=error.message),))

    def observe(self, jobset: Object) -> ObservedJobSet:
        """The JobSet and what the lister shows of its children."""
        namespace = namespace_of(jobset)
        owned = self._lister.list(JOB, namespace, owner_uid=uid_of(jobset))
        jobs = [job for job in owned if is_controlled_by(job, jobset)]
        known = {name_of(job) for job in jobs}
        expected = [
            build_job_name(name_of(jobset), replicated_job["name"], index)
            for replicated_job in replicated_jobs_of(jobset)
            for index in range(replicas_of(replicated_job))
        ]
        claims = [name_of(claim) for claim in build_claims(jobset)]
        return ObservedJobSet(
            jobset=jobset,
            jobs=jobs,
            foreign_jobs=frozenset(
                name
                for name in expected
                if name not in known and self._is_foreign(jobset, namespace, name)
            ),
            has_service=self._lister.get(SERVICE, namespace, find_subdomain(jobset)) is not None,
            claims=frozenset(
                name
                for name in claims
                if self._lister.get(PERSISTENT_VOLUME_CLAIM, namespace, name)
            ),
        )

    def _is_foreign(self, jobset: Object, namespace: str, name: str) -> bool:
        job = self._lister.get(JOB, namespace, name)
        return job is not None and not is_controlled_by(job, jobset)
