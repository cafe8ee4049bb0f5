"""Events of the embedded plane go after an hour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.kinds import EVENT
from trainwright.controllers.reconciler import Outcome, Watch
from trainwright.core.lifecycle.expiry import EVENT_TTL_S, plan_event_expiry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.base.times import Clock
    from trainwright.machinery.api import Lister
    from trainwright.machinery.workqueue import Key


class EventExpiryController:
    """Deletes old events."""

    name = "event-expiry"
    manager = "kube-apiserver"

    def __init__(self, *, lister: Lister, clock: Clock, ttl_s: float = EVENT_TTL_S) -> None:
        self._lister = lister
        self._clock = clock
        self._ttl_s = ttl_s

    def watches(self) -> Sequence[Watch]:
        """Events."""
        return (Watch(EVENT),)

    async def reconcile(self, key: Key) -> Outcome | None:
        """Look at one event's age and plan."""
        event = self._lister.get(EVENT, key.namespace, key.name)
        if event is None:
            return None
        return Outcome(event, plan_event_expiry(event, self._clock.now(), self._ttl_s))
