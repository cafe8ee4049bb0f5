"""What is going on among TrainJobs, in numbers: by state, how soon they start, why they fail."""

from __future__ import annotations

from collections import Counter as Tally
from typing import TYPE_CHECKING, get_args

from prometheus_client import Counter, Gauge, Histogram

from trainwright.api.conditions import CONDITION_REASONS, TRAINJOB_SUSPENDED
from trainwright.api.kinds import TRAINJOB
from trainwright.base.objects import dig, find_condition, uid_of
from trainwright.base.times import seconds_between
from trainwright.core.trainjob.status import StateName, reduce_state
from trainwright.machinery.api import WatchType

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainwright.base.objects import Object
    from trainwright.base.times import Clock
    from trainwright.core.trainjob.status import State
    from trainwright.machinery.api import Lister
    from trainwright.machinery.metrics import Metrics

START_BUCKETS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400)
OTHER = "Other"
JOBSET_REASONS = ("FailedJobs", "ReachedMaxRestarts", "FailJobSetFailurePolicyAction")
KNOWN_REASONS = frozenset({*JOBSET_REASONS, *(row.reason for row in CONDITION_REASONS)})
"""Reasons that are labels; every other one counts as `Other`, so that labels stay few."""


class JobMetrics:
    """Follows TrainJobs. Only the holder of the Lease counts, so that replicas add up."""

    def __init__(self, metrics: Metrics, clock: Clock, is_leading: Callable[[], bool]) -> None:
        self._clock = clock
        self._is_leading = is_leading
        self._states: dict[str, StateName] = {}
        self._tally: Tally[str] = Tally()
        self._started: set[str] = set()
        registry = metrics.registry
        by_state = Gauge(
            "trainwright_trainjobs", "TrainJobs by state", ("state",), registry=registry
        )
        for name in get_args(StateName):
            by_state.labels(name).set_function(self._counting(name))
        self._start_time = Histogram(
            "trainwright_trainjob_start_seconds",
            "From a TrainJob's creation, or its last resume, until its first Pod is ready",
            buckets=START_BUCKETS_S,
            registry=registry,
        )
        self._failures = Counter(
            "trainwright_trainjob_failures_total",
            "TrainJobs that failed, by the reason of their condition",
            ("reason",),
            registry=registry,
        )

    def follow(self, lister: Lister) -> None:
        """Subscribe to TrainJobs."""
        lister.subscribe(TRAINJOB, self.observe)

    def observe(self, change: WatchType, old: Object | None, new: Object) -> None:
        """Take in one change of a TrainJob."""
        uid = uid_of(new)
        before = self._states.pop(uid, None)
        if before is not None:
            self._tally[before] -= 1
        if change is WatchType.DELETED:
            self._started.discard(uid)
            return
        state = reduce_state(new, {}, ())
        self._states[uid] = state.name
        self._tally[state.name] += 1
        self._count_change(uid, new, state, is_news=old is not None and before != state.name)

    def _count_change(self, uid: str, trainjob: Object, state: State, *, is_news: bool) -> None:
        counts = is_news and self._is_leading()
        if state.name == "Failed" and counts:
            self._failures.labels(state.reason if state.reason in KNOWN_REASONS else OTHER).inc()
        if state.name == "Suspended":
            self._started.discard(uid)
        if state.name == "Running" and uid not in self._started:
            self._started.add(uid)
            since = _find_start(trainjob)
            if counts and since:
                self._start_time.observe(max(0.0, seconds_between(since, self._clock.now())))

    def _counting(self, state: str) -> Callable[[], float]:
        return lambda: self._tally[state] if self._is_leading() else 0


def _find_start(trainjob: Object) -> str:
    """When the TrainJob was last free to run."""
    resumed = find_condition(trainjob, TRAINJOB_SUSPENDED)
    if resumed is not None and resumed.get("status") == "False":
        return str(resumed.get("lastTransitionTime") or "")
    return str(dig(trainjob, "metadata", "creationTimestamp", default=""))
