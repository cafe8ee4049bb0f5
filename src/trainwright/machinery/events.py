"""Recording events (events.k8s.io/v1), with identical ones counted instead of repeated."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Literal

from trainwright.api.kinds import EVENT_V1
from trainwright.base.errors import ApiError, NotFound, Unreachable
from trainwright.base.objects import Object, name_of, namespace_of, resource_version_of, uid_of
from trainwright.base.times import render_micro_time
from trainwright.machinery.api import PatchType

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainwright.base.times import Clock
    from trainwright.machinery.api import Api

logger = logging.getLogger(__name__)

NOTE_LIMIT = 1024
"""The API server refuses longer notes."""
REMEMBERED = 4096
"""How many distinct events are remembered for counting."""

Series = tuple[str, str, str, str, str, str]


class EventRecorder:
    """Writes events about objects. Never raises: an event that is lost must not stop the work."""

    def __init__(
        self, api: Api, clock: Clock, *, instance: str, new_suffix: Callable[[], str]
    ) -> None:
        """`instance` names this process; `new_suffix` gives the random end of an event's name."""
        self._api = api
        self._clock = clock
        self._instance = instance
        self._new_suffix = new_suffix
        self._known: OrderedDict[Series, tuple[str, int]] = OrderedDict()

    async def record(
        self,
        controller: str,
        subject: Object,
        *,
        type: Literal["Normal", "Warning"],
        reason: str,
        note: str,
        action: str,
    ) -> None:
        """Record one event about `subject`, or count an identical earlier one up."""
        note = note if len(note) <= NOTE_LIMIT else note[: NOTE_LIMIT - 4] + " ..."
        series = (controller, uid_of(subject), type, reason, action, note)
        try:
            if series in self._known and await self._count_up(subject, series):
                return
            await self._create(controller, subject, series)
        except (ApiError, Unreachable) as error:
            logger.warning("the event %s about %s was lost: %s", reason, name_of(subject), error)

    async def _count_up(self, subject: Object, series: Series) -> bool:
        name, count = self._known[series]
        now = render_micro_time(self._clock.now())
        patch = {"series": {"count": count + 1, "lastObservedTime": now}}
        try:
            await self._api.patch(
                EVENT_V1,
                namespace_of(subject) or "default",
                name,
                patch,
                type=PatchType.MERGE,
                field_manager=series[0],
            )
        except NotFound:
            return False
        self._known[series] = (name, count + 1)
        return True

    async def _create(self, controller: str, subject: Object, series: Series) -> None:
        _, _, kind, reason, action, note = series
        name = f"{name_of(subject)[:200]}.{self._new_suffix()}"
        namespace = namespace_of(subject) or "default"
        event: Object = {
            "apiVersion": EVENT_V1.api_version,
            "kind": EVENT_V1.kind,
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": render_micro_time(self._clock.now()),
            "reportingController": controller,
            "reportingInstance": self._instance,
            "type": kind,
            "reason": reason,
            "action": action,
            "note": note,
            "regarding": {
                "apiVersion": subject.get("apiVersion", ""),
                "kind": subject.get("kind", ""),
                "name": name_of(subject),
                "namespace": namespace_of(subject),
                "uid": uid_of(subject),
                "resourceVersion": resource_version_of(subject),
            },
        }
        await self._api.create(EVENT_V1, event, field_manager=controller)
        self._known[series] = (name, 1)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
