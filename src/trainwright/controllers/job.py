"""The Job controller of the embedded plane: observes; `core.job` decides."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from trainwright.api.kinds import JOB, POD
from trainwright.api.wellknown import JOB_NAME_LABEL
from trainwright.base.objects import controller_of, is_controlled_by, uid_of
from trainwright.controllers.ownership import controlling
from trainwright.controllers.reconciler import Outcome, Watch
from trainwright.core.job.accounting import plan_orphans
from trainwright.core.job.memory import JobMemory
from trainwright.core.job.observed import ObservedJob
from trainwright.core.job.plan import DEFAULT_BACKOFF, plan_job
from trainwright.core.names import SUFFIX_ALPHABET, SUFFIX_LENGTH
from trainwright.core.plan import Create, Event, Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trainwright.base.errors import ApiError
    from trainwright.base.objects import Object
    from trainwright.base.times import Clock
    from trainwright.core.job.backoff import BackoffSettings
    from trainwright.core.plan import Action
    from trainwright.machinery.api import Lister
    from trainwright.machinery.workqueue import Key


def make_pod_suffix() -> str:
    """Random characters for a pod's name."""
    return "".join(secrets.choice(SUFFIX_ALPHABET) for _ in range(SUFFIX_LENGTH))


class JobController:
    """Reconciles Jobs."""

    name = "job-controller"
    manager = "kube-controller-manager"

    def __init__(
        self,
        *,
        lister: Lister,
        clock: Clock,
        backoff: BackoffSettings = DEFAULT_BACKOFF,
        make_suffix: Callable[[], str] = make_pod_suffix,
    ) -> None:
        self._lister = lister
        self._clock = clock
        self._backoff = backoff
        self._make_suffix = make_suffix
        self._memories: dict[Key, tuple[str, JobMemory]] = {}

    def watches(self) -> Sequence[Watch]:
        """Jobs and their pods."""
        return (Watch(JOB), Watch(POD, controlling(JOB)))

    async def reconcile(self, key: Key) -> Outcome | None:
        """Observe one Job and plan; let go of pods that an earlier Job of the name left."""
        job = self._lister.get(JOB, key.namespace, key.name)
        orphans = self._find_orphans(key, job)
        released = plan_orphans(orphans)
        if job is None:
            self._memories.pop(key, None)
            return Outcome(orphans[0], Plan(actions=released)) if released else None
        if released:
            return Outcome(job, Plan(actions=released, requeue_after_s=0.0))
        owned = self._lister.list(POD, key.namespace, owner_uid=uid_of(job))
        pods = [pod for pod in owned if is_controlled_by(pod, job)]
        plan = plan_job(
            ObservedJob(job=job, pods=pods),
            self._clock.now(),
            memory=self._remember(key, job),
            settings=self._backoff,
        )
        return Outcome(job, plan)

    def plan_failure(self, outcome: Outcome, action: Action, error: ApiError) -> Plan:
        """Say on the Job that a pod of it was refused."""
        if not isinstance(action, Create):
            return Plan()
        note = f"Error creating: {error.message}"
        return Plan(events=(Event(type="Warning", reason="FailedCreate", note=note),))

    def _find_orphans(self, key: Key, job: Object | None) -> list[Object]:
        """Pods that name a Job of this name as controller which is not the one there is."""
        uid = "" if job is None else uid_of(job)
        labelled = self._lister.list(POD, key.namespace, labels={JOB_NAME_LABEL: key.name})
        found = []
        for pod in labelled:
            owner = controller_of(pod)
            ours = owner is None or (owner.get("kind") == JOB.kind and owner.get("uid") != uid)
            if ours:
                found.append(pod)
        return found

    def _remember(self, key: Key, job: Object) -> JobMemory:
        uid, memory = self._memories.get(key, ("", None))
        if memory is None or uid != uid_of(job):
            memory = JobMemory(self._make_suffix)
            self._memories[key] = (uid_of(job), memory)
        return memory
