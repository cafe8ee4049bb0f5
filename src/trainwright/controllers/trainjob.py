"""The TrainJob controller: reads what a plan needs; `core.trainjob` decides.

The lister's word is enough for what is there. What is not there is asked for live before anything
is created: a lister that lags must not make a second snapshot or JobSet.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trainwright.api.conditions import TRAINJOB_CONTROLLER_NAME
from trainwright.api.kinds import CONFIG_MAP, JOBSET, TRAINJOB
from trainwright.api.schemas.registry import schema_of
from trainwright.api.trainjob import parse_trainjob
from trainwright.api.wellknown import SNAPSHOT_SUFFIX, TRAINER_MANAGER
from trainwright.base.errors import InvalidObject, NotFound
from trainwright.base.objects import controller_of, is_deleting, name_of, namespace_of, uid_of
from trainwright.controllers.reconciler import Outcome, Watch
from trainwright.core.plan import Apply, Delete, Patch, Plan
from trainwright.core.trainjob.plan import (
    Applied,
    Observed,
    key_of,
    plan_refusal,
    plan_trainjob,
    reads_snapshot,
    record_apply,
)
from trainwright.core.trainjob.runtime import find_runtime_kind, snapshot_name
from trainwright.core.trainjob.sameness import is_applied
from trainwright.core.trainjob.settings import DEFAULT_SETTINGS, TrainJobSettings
from trainwright.core.trainjob.status import is_finished
from trainwright.core.trainjob.throttle import hold_back_counts
from trainwright.machinery.workqueue import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from trainwright.api.kinds import Kind
    from trainwright.base.errors import ApiError
    from trainwright.base.objects import Object
    from trainwright.base.times import Clock
    from trainwright.core.plan import Action
    from trainwright.machinery.api import Api, Lister, WatchType

_TOO_MANY_REQUESTS = 429
_SERVER_ERRORS = 500
"""From here on a refusal says something about the server, not about the object."""


def owning_trainjob(_type: WatchType, _old: Object | None, new: Object) -> Iterable[Key]:
    """The TrainJob that controls an object, by name: an earlier one of the name counts too."""
    owner = controller_of(new)
    if owner is not None and owner.get("kind") == TRAINJOB.kind:
        yield Key(namespace_of(new), str(owner.get("name")))


def trainjob_of_jobset(change: WatchType, old: Object | None, new: Object) -> Iterable[Key]:
    """The TrainJob of a JobSet's name, whoever owns the JobSet, since it may be in the way."""
    return {Key(namespace_of(new), name_of(new)), *owning_trainjob(change, old, new)}


class TrainJobController:
    """Reconciles TrainJobs."""

    name = TRAINJOB_CONTROLLER_NAME
    manager = TRAINER_MANAGER

    def __init__(
        self,
        *,
        api: Api,
        lister: Lister,
        clock: Clock,
        settings: Callable[[], TrainJobSettings] = lambda: DEFAULT_SETTINGS,
    ) -> None:
        self._api = api
        self._lister = lister
        self._clock = clock
        self._settings = settings
        self._applied: dict[str, dict[str, Applied]] = {}
        """Our last apply of each object, by the uid of its TrainJob and `key_of`."""
        self._status_written: dict[str, float] = {}
        """When (monotonic) each TrainJob's status was last written, by uid."""
        self._uids: dict[Key, str] = {}

    def watches(self) -> Sequence[Watch]:
        """TrainJobs, and what belongs to them."""
        return (
            Watch(TRAINJOB),
            Watch(JOBSET, trainjob_of_jobset),
            Watch(CONFIG_MAP, owning_trainjob),
        )

    async def reconcile(self, key: Key) -> Outcome | None:
        """Observe one TrainJob and plan."""
        trainjob = self._lister.get(TRAINJOB, key.namespace, key.name)
        self._forget_other(key, trainjob)
        if trainjob is None:
            return None
        observed = await self._observe(trainjob)
        plan = plan_trainjob(observed, self._settings(), self._clock.now())
        if unseen := await self._find_unseen(plan):
            observed = replace(observed, children=(*observed.children, *unseen))
            plan = plan_trainjob(observed, self._settings(), self._clock.now())
        plan = await self._without_needless(plan, trainjob)
        written = self._status_written.get(uid_of(trainjob))
        since_s = None if written is None else self._clock.monotonic() - written
        return Outcome(trainjob, hold_back_counts(plan, trainjob, since_s))

    def note_written(self, subject: Object, action: Action, written: Object) -> None:
        """Remember what a JobSet was made of and when a status was written."""
        match action:
            case Patch(kind=kind) if kind == TRAINJOB:
                self._status_written[uid_of(subject)] = self._clock.monotonic()
            case Apply(obj=desired):
                applied = self._applied.setdefault(uid_of(subject), {})
                applied[key_of(dict(desired))] = record_apply(dict(desired), written)
            case Delete(kind=kind) if kind == JOBSET:
                self._applied.pop(uid_of(subject), None)

    def plan_failure(self, outcome: Outcome, action: Action, error: ApiError) -> Plan:
        """Put the server's text into the TrainJob's own conditions."""
        del action
        if error.status_code >= _SERVER_ERRORS or error.status_code == _TOO_MANY_REQUESTS:
            return Plan()
        return plan_refusal(outcome.subject, outcome.plan, error.message, self._clock.now())

    async def _observe(self, trainjob: Object) -> Observed:
        namespace, name = namespace_of(trainjob), name_of(trainjob)
        jobset = self._lister.get(JOBSET, namespace, name)
        snapshot = self._lister.get(CONFIG_MAP, namespace, snapshot_name(name))
        runtime = None
        if _may_need_objects(trainjob):
            jobset = jobset or await self._get(JOBSET, namespace, name)
            snapshot = snapshot or await self._get(CONFIG_MAP, namespace, snapshot_name(name))
        if snapshot is not None and "data" not in snapshot and reads_snapshot(trainjob, jobset):
            # Informers keep the metadata of ConfigMaps only.
            snapshot = await self._get(CONFIG_MAP, namespace, snapshot_name(name))
        if snapshot is None and _may_need_objects(trainjob):
            runtime = await self._get_runtime(trainjob)
        return Observed(
            trainjob=trainjob,
            jobset=jobset,
            snapshot=snapshot,
            runtime=runtime,
            children=tuple(self._lister.list(CONFIG_MAP, namespace, owner_uid=uid_of(trainjob))),
            applied=self._applied.get(uid_of(trainjob), {}),
        )

    async def _find_unseen(self, plan: Plan) -> list[Object]:
        """Objects that the plan would make, although they are there: the lister lags."""
        found = []
        for action in plan.actions:
            # JobSet and snapshot have been asked for live already.
            if isinstance(action, Apply) and action.uid is None and not _is_asked_for(action):
                live = await self._get(action.kind, namespace_of(action.obj), name_of(action.obj))
                found += [live] if live is not None else []
        return found

    async def _without_needless(self, plan: Plan, trainjob: Object) -> Plan:
        """The plan without applies whose objects are as wanted already.

        What an earlier process applied is not known here: it is looked at once, and remembered.
        """
        known = self._applied.setdefault(uid_of(trainjob), {})
        kept: list[Action] = []
        for action in plan.actions:
            desired = dict(action.obj) if isinstance(action, Apply) and action.uid else {}
            if desired and key_of(desired) not in known:
                live = await self._get(action.kind, namespace_of(desired), name_of(desired))
                if live is not None and is_applied(desired, live, schema_of(action.kind)):
                    known[key_of(desired)] = record_apply(desired, live)
                    continue
            kept.append(action)
        return replace(plan, actions=tuple(kept))

    async def _get_runtime(self, trainjob: Object) -> Object | None:
        try:
            ref = parse_trainjob(trainjob).runtime_ref
        except InvalidObject:
            return None
        kind = find_runtime_kind(ref)
        if kind is None:
            return None
        return await self._get(kind, namespace_of(trainjob) if kind.namespaced else "", ref.name)

    async def _get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        try:
            return await self._api.get(kind, namespace, name)
        except NotFound:
            return None

    def _forget_other(self, key: Key, trainjob: Object | None) -> None:
        """Drop what is remembered of an earlier TrainJob of this name."""
        uid = uid_of(trainjob) if trainjob is not None else ""
        before = self._uids.pop(key, uid)
        if before != uid:
            self._applied.pop(before, None)
            self._status_written.pop(before, None)
        if uid:
            self._uids[key] = uid


def _is_asked_for(action: Apply) -> bool:
    return action.kind == JOBSET or name_of(action.obj).endswith(SNAPSHOT_SUFFIX)


def _may_need_objects(trainjob: Object) -> bool:
    """Whether a plan may want to create something, so that absences must be seen live."""
    if is_finished(trainjob) or is_deleting(trainjob):
        return False
    try:
        return parse_trainjob(trainjob).is_ours
    except InvalidObject:
        return False
