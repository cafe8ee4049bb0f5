"""How long a replacement pod waits after failures: 10 s, doubling per failure, at most 600 s."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.base.objects import dig, is_deleting, uid_of
from trainwright.core.job.observed import (
    find_finish_time,
    index_of,
    is_suspended,
    is_tracked,
)

if TYPE_CHECKING:
    from datetime import datetime

    from trainwright.base.objects import ObjectView
    from trainwright.core.job.memory import JobMemory
    from trainwright.core.job.observed import PodClasses


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffSettings:
    """Delays of replacement pods."""

    base_s: float = 10.0
    """After the first failure; upstream's."""
    cap_s: float = 600.0
    """Longest delay; upstream's."""


def remember_ends(job: ObjectView, classes: PodClasses, memory: JobMemory) -> None:
    """Note when pods ended, since pods may be gone before their replacement is due.

    A pod that is being deleted and no longer tracked was stopped on purpose: no failure.
    """
    for pod in classes.failed:
        stopped = is_deleting(pod) and (not is_tracked(pod) or is_suspended(job))
        if not stopped and uid_of(pod) not in memory.failures:
            memory.failures[uid_of(pod)] = (find_finish_time(pod), index_of(pod))
    for pod in classes.succeeded:
        memory.successes.setdefault(uid_of(pod), find_finish_time(pod))


def find_delay_s(
    job: ObjectView, index: int, memory: JobMemory, settings: BackoffSettings, now: datetime
) -> float:
    """Seconds that a new pod of `index` still has to wait; at most 0 when it may start.

    Source: contract/jobset.md 2.4. With a limit per index each index waits for itself.
    """
    if dig(job, "spec", "backoffLimitPerIndex") is not None:
        ends = [end for end, failed in memory.failures.values() if failed == index]
    else:
        last_success = max(memory.successes.values(), default=None)
        ends = [
            end for end, _ in memory.failures.values() if last_success is None or end > last_success
        ]
    if not ends:
        return 0.0
    delay_s: float = min(settings.base_s * 2 ** min(len(ends) - 1, 30), settings.cap_s)
    return delay_s - (now - max(ends)).total_seconds()
