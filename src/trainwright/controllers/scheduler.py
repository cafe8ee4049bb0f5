"""The scheduler of the embedded plane: observes; `core.lifecycle.scheduling` decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.kinds import NODE, POD
from trainwright.base.objects import dig, name_of, namespace_of
from trainwright.controllers.reconciler import Outcome, Watch
from trainwright.core.lifecycle.scheduling import ObservedPod, plan_scheduling
from trainwright.machinery.api import WatchType
from trainwright.machinery.workqueue import Key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trainwright.base.objects import Object
    from trainwright.base.times import Clock
    from trainwright.machinery.api import Lister

_ENDED = ("Succeeded", "Failed")


class SchedulerController:
    """Gives pods their node. One worker: what a pod takes must be seen by the next."""

    name = "default-scheduler"
    manager = "kube-scheduler"

    def __init__(self, *, lister: Lister, clock: Clock) -> None:
        self._lister = lister
        self._clock = clock
        # Most pods have ended: looking through all of them for each new one would be quadratic.
        self._waiting: set[Key] = set()
        self._holding: set[Key] = set()

    def watches(self) -> Sequence[Watch]:
        """Pods without a node; all of them again when room appears."""
        return (Watch(POD, self._pod_changed), Watch(NODE, self._node_changed))

    async def reconcile(self, key: Key) -> Outcome | None:
        """Observe one pod and plan."""
        pod = self._lister.get(POD, key.namespace, key.name)
        if pod is None or dig(pod, "spec", "nodeName"):
            return None
        others = (self._lister.get(POD, *other) for other in sorted(self._holding))
        bound = [other for other in others if other is not None and _holds_room(other)]
        observed = ObservedPod(pod=pod, nodes=self._lister.list(NODE), bound=bound)
        return Outcome(pod, plan_scheduling(observed, self._clock.now()))

    def _pod_changed(self, change: WatchType, _old: Object | None, new: Object) -> Iterable[Key]:
        key, is_gone = _key(new), change is WatchType.DELETED
        held = key in self._holding
        _keep(self._holding, key, not is_gone and _holds_room(new))
        waits = not is_gone and not dig(new, "spec", "nodeName")
        _keep(self._waiting, key, waits)
        if waits:
            return (key,)
        return self._pending() if held and key not in self._holding else ()

    def _node_changed(self, _type: WatchType, old: Object | None, new: Object) -> Iterable[Key]:
        """Heartbeats change nothing that scheduling looks at."""
        return () if old is not None and _offer(old) == _offer(new) else self._pending()

    def _pending(self) -> list[Key]:
        return sorted(self._waiting)


def _keep(keys: set[Key], key: Key, wanted: bool) -> None:
    if wanted:
        keys.add(key)
    else:
        keys.discard(key)


def _key(obj: Object) -> Key:
    return Key(namespace_of(obj), name_of(obj))


def _holds_room(pod: Object) -> bool:
    return bool(dig(pod, "spec", "nodeName")) and dig(pod, "status", "phase") not in _ENDED


def _offer(node: Object) -> tuple[object, object, object]:
    return (
        dig(node, "metadata", "labels"),
        dig(node, "spec"),
        dig(node, "status", "allocatable"),
    )
