"""When a quota is lifted or something of a full namespace goes, what was refused tries again at once.

Without this the controllers' back-off would decide, which grows to minutes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.kinds import (
    CONFIG_MAP,
    JOB,
    JOBSET,
    LIMIT_RANGE,
    POD,
    RESOURCE_QUOTA,
    SERVICE,
)
from trainwright.base.objects import Object, dig, namespace_of
from trainwright.machinery.api import WatchType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.machinery.api import Lister
    from trainwright.machinery.workqueue import WorkQueue

_LIMITS = (RESOURCE_QUOTA, LIMIT_RANGE)
_COUNTED = (POD, JOB, JOBSET, SERVICE, CONFIG_MAP)
_FINISHED = ("Succeeded", "Failed")


def retry_when_there_is_room(lister: Lister, queues: Sequence[WorkQueue]) -> None:
    """Let every key that failed in a namespace run again when its limits may allow more."""

    def retry(namespace: str) -> None:
        for queue in queues:
            queue.retry_failed(namespace)

    def limits_changed(change: WatchType, old: Object | None, new: Object) -> None:
        told = change is not WatchType.DELETED and old is not None
        if not told or dig(old, "spec") != dig(new, "spec"):  # a quota's status says what is used
            retry(namespace_of(new))

    def content_changed(change: WatchType, _old: Object | None, new: Object) -> None:
        frees = change is WatchType.DELETED or dig(new, "status", "phase") in _FINISHED
        if frees and lister.list(RESOURCE_QUOTA, namespace_of(new)):
            retry(namespace_of(new))

    for kind in _LIMITS:
        lister.subscribe(kind, limits_changed)
    for kind in _COUNTED:
        lister.subscribe(kind, content_changed)
