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

    def watches(self) -> Sequence[Watch]:
        """Pods without a node; all of them again when room appears."""
        return (Watch(POD, self._pod_changed), Watch(NODE, self._node_changed))

    async def reconcile(self, key: Key) -> Outcome | None:
        """Observe one pod and plan."""
        pod = self._lister.get(POD, key.namespace, key.name)
        if pod is None or dig(pod, "spec", "nodeName"):
            return None
        bound = [other for other in self._lister.list(POD) if _holds_room(other)]
        observed = ObservedPod(pod=pod, nodes=self._lister.list(NODE), bound=bound)
        return Outcome(pod, plan_scheduling(observed, self._clock.now()))

    def _pod_changed(self, change: WatchType, old: Object | None, new: Object) -> Iterable[Key]:
        if not dig(new, "spec", "nodeName"):
            return () if change is WatchType.DELETED else (_key(new),)
        freed = change is WatchType.DELETED or (
            old is not None and _holds_room(old) and not _holds_room(new)
        )
        return self._pending() if freed else ()

    def _node_changed(self, _type: WatchType, old: Object | None, new: Object) -> Iterable[Key]:
        """Heartbeats change nothing that scheduling looks at."""
        return () if old is not None and _offer(old) == _offer(new) else self._pending()

    def _pending(self) -> list[Key]:
        return [_key(pod) for pod in self._lister.list(POD) if not dig(pod, "spec", "nodeName")]


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
