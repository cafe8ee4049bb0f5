"""One simulated cluster: virtual time, the real controllers, a toy node, and bad luck."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from tests.simulation.lister import BadLister
from tests.simulation.store import ToyStore
from trainwright.api.kinds import CONFIG_MAP, JOB, JOBSET, NODE, POD, SERVICE, TRAINJOB
from trainwright.base.errors import ApiError
from trainwright.base.objects import dig, is_deleting, labels_of, name_of, namespace_of, uid_of
from trainwright.base.times import render_time
from trainwright.controllers.garbage import GarbageController
from trainwright.controllers.job import JobController
from trainwright.controllers.jobset import JobSetController
from trainwright.controllers.reconciler import LearnsFromWrites, carry_out
from trainwright.controllers.scheduler import SchedulerController
from trainwright.controllers.trainjob import TrainJobController
from trainwright.core.names import SUFFIX_ALPHABET
from trainwright.core.plan import Delete
from trainwright.machinery.api import DeleteOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from trainwright.base.objects import Object
    from trainwright.controllers.reconciler import Controller, Mapper
    from trainwright.machinery.api import WatchType
    from trainwright.machinery.workqueue import Key

T = TypeVar("T")
START = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = (TRAINJOB, CONFIG_MAP, JOBSET, JOB, POD, SERVICE, NODE)
NODE_OBJECT: Object = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "laptop", "labels": {}},
    "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}},
}


class Crash(Exception):
    """The process of the controllers dies between two actions."""


def finish(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise AssertionError("a controller waited for something")


class World:
    """Call `step` for a while, then `settle`, and look at `store`."""

    def __init__(self, seed: int, *, outcome: Callable[[Object], int]) -> None:
        """`outcome` gives the exit code of a pod that ends by itself."""
        self.rng = random.Random(seed)
        self._now = START
        self._outcome = outcome
        self._overlays = bool(seed % 2)
        """Whether the lister shows the controllers' own writes at once: a plane's has no need to."""
        self.store = ToyStore(self.now)
        self.crashes = 0
        finish(self.store.create(NODE, NODE_OBJECT))
        self._boot()

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._now.timestamp()

    def step(self) -> None:
        """One random thing happens."""
        luck = self.rng.random()
        if luck < 0.45:
            self.lister.stumble()
        elif luck < 0.80:
            self._reconcile_one(lucky=False)
        elif luck < 0.95:
            self._run_pods(1)
        elif luck < 0.99:
            self._now += timedelta(seconds=self.rng.choice((1, 5, 30)))
        else:
            self._crash()

    def settle(self) -> None:
        """No more bad luck: run until nothing is left to do."""
        for _ in range(3000):
            self.lister.catch_up()
            if self._reconcile_one(lucky=True) or self._run_pods(1):
                continue
            due = [time for queue in self._queues.values() for time in queue.values()]
            if not due:
                return
            self._now = max(self._now, min(due))
        raise AssertionError("the cluster does not come to rest")

    def _boot(self) -> None:
        """Start the controllers' process: fresh caches, no memory."""
        self.lister = BadLister(self.store, self.rng)
        self._queues: dict[Controller, dict[Key, datetime]] = {}
        controllers: tuple[Controller, ...] = (
            TrainJobController(api=self.store, lister=self.lister, clock=self),  # type: ignore[arg-type]  # the part of Api that it uses
            JobSetController(lister=self.lister, clock=self),
            JobController(lister=self.lister, clock=self, make_suffix=self._suffix),
            GarbageController(api=self.store, lister=self.lister, kinds=lambda: KINDS),  # type: ignore[arg-type]  # the part of Api that it uses
            SchedulerController(lister=self.lister, clock=self),
        )
        for controller in controllers:
            self._queues[controller] = {}
            for watch in controller.watches():
                self.lister.subscribe(watch.kind, self._enqueue(controller, watch.mapper))

    def _suffix(self) -> str:
        return "".join(self.rng.choices(SUFFIX_ALPHABET, k=5))

    def _enqueue(
        self, controller: Controller, mapper: Mapper
    ) -> Callable[[WatchType, Object | None, Object], None]:
        def handle(change: WatchType, old: Object | None, new: Object) -> None:
            for key in mapper(change, old, new):
                self._queues[controller][key] = self._now

        return handle

    def _crash(self) -> None:
        self.crashes += 1
        self._boot()

    def _reconcile_one(self, *, lucky: bool) -> bool:
        due = [
            (controller, key)
            for controller, queue in self._queues.items()
            for key, time in sorted(queue.items())
            if time <= self._now
        ]
        if not due:
            return False
        controller, key = self.rng.choice(due)
        queue = self._queues[controller]
        del queue[key]
        try:
            outcome = finish(controller.reconcile(key))
            if outcome is None:
                return True
            plan = outcome.plan
            for action in (*plan.actions, *((plan.status,) if plan.status else ())):
                if not lucky:
                    self._disturb()
                written = finish(carry_out(action, self.store, controller.manager))  # type: ignore[arg-type]  # the part of Api that it uses
                if self._overlays and written and not isinstance(action, Delete):
                    self.lister.observe_write(action.kind, written)
                if written and isinstance(controller, LearnsFromWrites):
                    controller.note_written(outcome.subject, action, written)
        except Crash:
            self._crash()
            return True
        except ApiError:
            queue.setdefault(key, self._now + timedelta(seconds=1))
            return True
        if plan.error:
            queue.setdefault(key, self._now + timedelta(seconds=1))
        elif plan.requeue_after_s is not None:
            later = self._now + timedelta(seconds=plan.requeue_after_s)
            queue[key] = min(later, queue.get(key, later))
        return True

    def _disturb(self) -> None:
        """Something happens between two actions of a plan."""
        luck = self.rng.random()
        if luck < 0.02:
            raise Crash
        if luck < 0.10:
            self._run_pods(1)

    # The toy node

    def _run_pods(self, count: int) -> bool:
        """Some pods get one step further; False when none has a next step."""
        ready = [pod for pod in self.store.all(POD) if self._has_next_step(pod)]
        for pod in self.rng.sample(ready, min(count, len(ready))):
            self._advance(pod)
        return bool(ready)

    @staticmethod
    def _has_next_step(pod: Object) -> bool:
        if not dig(pod, "spec", "nodeName"):
            return False
        ended = dig(pod, "status", "phase") in ("Succeeded", "Failed")
        if is_deleting(pod):
            return not ended or bool(dig(pod, "metadata", "deletionGracePeriodSeconds"))
        return not ended

    def _advance(self, pod: Object) -> None:
        phase = dig(pod, "status", "phase", default="Pending")
        if is_deleting(pod):
            if phase not in ("Succeeded", "Failed"):
                self._end(pod, 143)
            else:
                options = DeleteOptions(grace_period_s=0, uid=uid_of(pod))
                finish(self.store.delete(POD, namespace_of(pod), name_of(pod), options))
        elif phase == "Pending":
            ready = {"type": "Ready", "status": "True"}
            self._report(pod, {"phase": "Running", "conditions": [ready]})
        else:
            self._end(pod, self._outcome(pod))

    def _end(self, pod: Object, code: int) -> None:
        state = {"terminated": {"exitCode": code, "finishedAt": render_time(self._now)}}
        self._report(
            pod,
            {
                "phase": "Failed" if code else "Succeeded",
                "conditions": [{"type": "Ready", "status": "False"}],
                "containerStatuses": [{"name": "c", "state": state, "restartCount": 0}],
            },
        )

    def _report(self, pod: Object, status: Object) -> None:
        place = (namespace_of(pod), name_of(pod))
        finish(self.store.patch(POD, *place, {"status": status}, subresource="status"))


def job_name_of(pod: Object) -> str:
    """The Job that the pod belongs to."""
    return labels_of(pod).get("job-name", "")
