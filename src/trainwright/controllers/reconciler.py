"""Running a controller: watches fill a queue, workers reconcile keys, plans are carried out.

A controller says what it follows and turns one key into an `Outcome`. Everything that touches the
server happens here, once, in this order: actions, the status write, events.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from trainwright.base.errors import AlreadyExists, ApiError, Conflict, NotFound, Unreachable
from trainwright.base.objects import Object, name_of, namespace_of
from trainwright.core.journal import NO_JOURNAL, find_transitions
from trainwright.core.plan import Action, Apply, Create, Delete, Patch, Plan
from trainwright.machinery.api import DeleteOptions, PatchType, WatchType
from trainwright.machinery.apply import apply_object
from trainwright.machinery.workqueue import Key, WorkQueue

if TYPE_CHECKING:
    from trainwright.api.kinds import Kind
    from trainwright.base.times import Clock
    from trainwright.core.journal import Journal
    from trainwright.machinery.api import Api, Lister
    from trainwright.machinery.events import EventRecorder

logger = logging.getLogger(__name__)

Mapper = Callable[[WatchType, Object | None, Object], Iterable[Key]]
"""From a change (type, object before if known, object now) to the keys that it concerns."""


def itself(_type: WatchType, _old: Object | None, new: Object) -> Iterable[Key]:
    """The mapper of a controller's own kind."""
    return (Key(namespace_of(new), name_of(new)),)


@dataclass(frozen=True, slots=True)
class Watch:
    """A kind that a controller follows, and the keys that a change of it concerns."""

    kind: Kind
    mapper: Mapper = itself


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a reconcile decided about `subject`, the object that events are about."""

    subject: Object
    plan: Plan


class Controller(Protocol):
    """Turns the state that a lister shows for one key into a plan."""

    name: str
    """Names the controller in logs, and as reporting controller in events."""
    manager: str
    """Field manager of creates, patches and status writes."""

    def watches(self) -> Sequence[Watch]:
        """What to follow."""
        ...

    async def reconcile(self, key: Key) -> Outcome | None:
        """Observe and plan; None when there is nothing to do. Must not write."""
        ...


@runtime_checkable
class LearnsFromWrites(Protocol):
    """An ability: the controller wants to know how an action went."""

    def note_written(self, subject: Object, action: Action, written: Object) -> None:
        """The server accepted the action and answered `written`."""
        ...


@runtime_checkable
class ExplainsFailure(Protocol):
    """An ability: the controller puts a refusal of the server into the object's own status."""

    def plan_failure(self, outcome: Outcome, action: Action, error: ApiError) -> Plan:
        """What to write when `action` was refused with `error`."""
        ...


WriteObserver = Callable[["Kind", Object], None]


def _ignore_write(_kind: Kind, _written: Object) -> None:
    pass


def _ignore_panic() -> None:
    pass


async def carry_out(action: Action, api: Api, manager: str) -> Object:
    """Do one action and return the server's answer; success when it was done already."""
    match action:
        case Apply(kind=kind, obj=wanted):
            obj = dict(wanted)
            if action.uid is not None:
                obj["metadata"] = {**obj["metadata"], "uid": action.uid}
            return await apply_object(api, kind, obj, action.manager)
        case Create(kind=kind, obj=wanted):
            try:
                return await api.create(kind, dict(wanted), field_manager=manager)
            except AlreadyExists:
                if not action.may_exist:
                    raise
                return dict(wanted)
        case Delete(kind=kind):
            options = DeleteOptions(
                propagation=action.propagation,
                uid=action.uid,
                resource_version=action.resource_version,
            )
            try:
                return await api.delete(kind, action.namespace, action.name, options)
            except NotFound:
                return {}
            except Conflict:
                if action.resource_version is not None:
                    raise
                return {}  # another object has the name by now: the one we meant is gone
        case Patch(kind=kind):
            body = dict(action.patch)
            if action.resource_version:
                metadata = dict(body.get("metadata") or {})
                body["metadata"] = metadata | {"resourceVersion": action.resource_version}
            return await api.patch(
                kind,
                action.namespace,
                action.name,
                body,
                type=PatchType.MERGE,
                subresource=action.subresource,
                field_manager=manager,
            )


def _is_there_still(deleted: Object) -> bool:
    """Whether the answer to a DELETE is an object that waits for something before it goes."""
    metadata = deleted.get("metadata") or {}
    return bool(metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds"))


class ControllerLoop:
    """One running controller: its queue, its workers, its back-off."""

    def __init__(
        self,
        controller: Controller,
        *,
        api: Api,
        lister: Lister,
        clock: Clock,
        events: EventRecorder,
        workers: int = 1,
        observe_write: WriteObserver = _ignore_write,
        journal: Journal = NO_JOURNAL,
        queue: WorkQueue | None = None,
        on_panic: Callable[[], None] = _ignore_panic,
    ) -> None:
        """`queue` is one of its own by default; `on_panic` hears of errors that nobody foresaw."""
        self._controller = controller
        self._api = api
        self._lister = lister
        self._events = events
        self._workers = workers
        self._observe_write = observe_write
        self._journal = journal
        self._followed: set[str] = set()
        self._subscribing = False
        self._on_panic = on_panic
        self.queue = WorkQueue(clock) if queue is None else queue

    async def run(self) -> None:
        """Reconcile until cancelled or closed."""
        self.follow()
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"{self._controller.name}-{number}")

    def follow(self) -> None:
        """Subscribe to what the controller watches; once more when there are other kinds."""
        new = [w for w in self._controller.watches() if w.kind.resource not in self._followed]
        self._followed |= {watch.kind.resource for watch in new}
        # What is there already can wait for what changes meanwhile.
        self._subscribing = True
        for watch in new:
            self._lister.subscribe(watch.kind, self._enqueue_with(watch.mapper))
        self._subscribing = False

    def close(self) -> None:
        """Let `run` end after the keys that are being worked on."""
        self.queue.close()

    def _enqueue_with(self, mapper: Mapper) -> Callable[[WatchType, Object | None, Object], None]:
        def enqueue(change: WatchType, old: Object | None, new: Object) -> None:
            urgent = change is not WatchType.SYNC and not self._subscribing
            if change is WatchType.SYNC:
                change = WatchType.ADDED if old is None else WatchType.MODIFIED
            for key in mapper(change, old, new):
                self.queue.add(key, urgent=urgent)

        return enqueue

    async def _work(self) -> None:
        while (key := await self.queue.take()) is not None:
            try:
                await self._reconcile(key)
            except Conflict:
                # Somebody wrote in between: look again, that is no failure.
                self.queue.add_failed(key)
            except (ApiError, Unreachable) as error:
                delay_s = self.queue.add_failed(key)
                logger.info(
                    "%s %s: %s; trying again in %.2f s", self._controller.name, key, error, delay_s
                )
            except Exception:  # the outermost edge: one bad object must not stop the rest
                self._on_panic()
                delay_s = self.queue.add_failed(key)
                logger.exception(
                    "%s %s failed; trying again in %.2f s", self._controller.name, key, delay_s
                )
            finally:
                self.queue.done(key)

    async def _reconcile(self, key: Key) -> None:
        outcome = await self._controller.reconcile(key)
        if outcome is None:
            self.queue.forget(key)
            return
        for action in outcome.plan.actions:
            try:
                await self._do(outcome.subject, action)
            except Conflict:
                raise
            except ApiError as error:
                await self._explain(outcome, action, error)
                raise
        await self._finish(outcome.subject, outcome.plan)
        if outcome.plan.error:
            self.queue.add_failed(key)
            return
        self.queue.forget(key)
        if outcome.plan.requeue_after_s is not None:
            self.queue.add_after(key, outcome.plan.requeue_after_s)

    async def _do(self, subject: Object, action: Action) -> None:
        written = await carry_out(action, self._api, self._controller.manager)
        if written:
            if not isinstance(action, Delete) or _is_there_still(written):
                self._observe_write(action.kind, written)
            if isinstance(action, Patch) and action.subresource == "status":
                self._tell_transitions(subject, action, written)
            if isinstance(self._controller, LearnsFromWrites):
                self._controller.note_written(subject, action, written)

    def _tell_transitions(self, subject: Object, action: Patch, written: Object) -> None:
        if (name_of(subject), subject.get("kind")) == (action.name, action.kind.kind):
            for transition in find_transitions(subject, written):
                self._journal.record(transition)

    async def _explain(self, outcome: Outcome, action: Action, error: ApiError) -> None:
        if isinstance(self._controller, ExplainsFailure):
            await self._finish(
                outcome.subject, self._controller.plan_failure(outcome, action, error)
            )

    async def _finish(self, subject: Object, plan: Plan) -> None:
        if plan.status is not None:
            await self._do(subject, plan.status)
        for event in plan.events:
            await self._events.record(
                self._controller.name,
                subject,
                type=event.type,
                reason=event.reason,
                note=event.note,
                action=event.action,
            )
