"""Prometheus metrics by the names that dashboards of Go controllers read, and our own.

Source: controller-runtime and client-go, as far as they mean something here. Labels are bounded:
names of controllers, methods, codes.
"""

from __future__ import annotations

import logging
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import aiohttp
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from trainwright.machinery.workqueue import Key, WorkQueue

if TYPE_CHECKING:
    from types import SimpleNamespace

    from trainwright.base.times import Clock

logger = logging.getLogger(__name__)

RECONCILE_BUCKETS_S = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
    1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
)  # fmt: skip
QUEUE_BUCKETS_S = tuple(10.0**exponent for exponent in range(-8, 4))
SKEW_WARNING_S = 5.0
"""Clocks that differ by more make deadlines wrong."""
SKEW_TRUSTED_S = 1.0
"""An answer that took longer tells too little of the server's clock."""


class Metrics:
    """Every metric of one process, in a registry of its own."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library forgot
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        self.reconciles = Counter(
            "controller_runtime_reconcile_total",
            "Reconciles by controller and result",
            ("controller", "result"),
            registry=registry,
        )
        self.reconcile_errors = Counter(
            "controller_runtime_reconcile_errors_total",
            "Reconciles that ended in an error",
            ("controller",),
            registry=registry,
        )
        self.terminal_errors = Counter(
            "controller_runtime_terminal_reconcile_errors_total",
            "Reconciles that ended in an error which is not tried again",
            ("controller",),
            registry=registry,
        )
        self.panics = Counter(
            "controller_runtime_reconcile_panics_total",
            "Reconciles that ended in an error which nobody foresaw",
            ("controller",),
            registry=registry,
        )
        self.reconcile_time = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "How long reconciles take",
            ("controller",),
            buckets=RECONCILE_BUCKETS_S,
            registry=registry,
        )
        self.active_workers = Gauge(
            "controller_runtime_active_workers",
            "Workers that reconcile now",
            ("controller",),
            registry=registry,
        )
        self.max_workers = Gauge(
            "controller_runtime_max_concurrent_reconciles",
            "Workers that there are",
            ("controller",),
            registry=registry,
        )
        queue = ("name", "controller")
        self.depth = Gauge("workqueue_depth", "Keys that wait", queue, registry=registry)
        self.adds = Counter("workqueue_adds_total", "Keys added", queue, registry=registry)
        self.queue_time = Histogram(
            "workqueue_queue_duration_seconds",
            "How long keys wait",
            queue,
            buckets=QUEUE_BUCKETS_S,
            registry=registry,
        )
        self.work_time = Histogram(
            "workqueue_work_duration_seconds",
            "How long keys are worked on",
            queue,
            buckets=QUEUE_BUCKETS_S,
            registry=registry,
        )
        self.retries = Counter(
            "workqueue_retries_total", "Keys tried again", queue, registry=registry
        )
        self.unfinished = Gauge(
            "workqueue_unfinished_work_seconds",
            "Seconds that keys now in work have taken together",
            queue,
            registry=registry,
        )
        self.longest = Gauge(
            "workqueue_longest_running_processor_seconds",
            "Seconds that the oldest key in work has taken",
            queue,
            registry=registry,
        )
        self.requests = Counter(
            "rest_client_requests_total",
            "Requests to the API server",
            ("code", "method", "host"),
            registry=registry,
        )
        self.leader = Gauge(
            "leader_election_master_status",
            "Whether this process holds the lease",
            ("name",),
            registry=registry,
        )
        self.certificate_reads = Counter(
            "certwatcher_read_certificate_total",
            "Certificates read from files",
            registry=registry,
        )
        self.certificate_errors = Counter(
            "certwatcher_read_certificate_errors_total",
            "Certificates that could not be read",
            registry=registry,
        )
        self.clock_skew = Gauge(
            "trainwright_clock_skew_seconds",
            "The API server's clock minus ours, to about a second",
            registry=registry,
        )

    def render(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self.registry)


class MeasuredQueue(WorkQueue):
    """A workqueue that tells how it goes, and with it how the controller's reconciles go."""

    def __init__(self, clock: Clock, metrics: Metrics, controller: str) -> None:
        super().__init__(clock)
        self._time = clock.monotonic
        self._added_at: dict[Key, float] = {}
        self._taken_at: dict[Key, float] = {}
        self._results: dict[Key, str] = {}
        self._failing = False
        self._metrics, self._controller = metrics, controller
        labels = {"name": controller, "controller": controller}
        self._adds = metrics.adds.labels(**labels)
        self._retries = metrics.retries.labels(**labels)
        self._queue_time = metrics.queue_time.labels(**labels)
        self._work_time = metrics.work_time.labels(**labels)
        self._reconcile_time = metrics.reconcile_time.labels(controller)
        self._errors = metrics.reconcile_errors.labels(controller)
        metrics.terminal_errors.labels(controller)
        metrics.panics.labels(controller)
        metrics.depth.labels(**labels).set_function(lambda: len(self))
        metrics.active_workers.labels(controller).set_function(lambda: len(self._taken_at))
        metrics.unfinished.labels(**labels).set_function(lambda: sum(self._ages()))
        metrics.longest.labels(**labels).set_function(lambda: max(self._ages(), default=0.0))

    def _ages(self) -> list[float]:
        now = self._time()
        return [now - moment for moment in self._taken_at.values()]

    def add(self, key: Key, *, urgent: bool = True) -> None:
        """Count a key that has to wait."""
        before = len(self)
        super().add(key, urgent=urgent)
        if len(self) > before:
            self._adds.inc()
            self._added_at[key] = self._time()

    async def take(self) -> Key | None:
        """Measure how long the key waited."""
        key = await super().take()
        if key is not None:
            now = self._taken_at[key] = self._time()
            self._queue_time.observe(now - self._added_at.pop(key, now))
        return key

    def add_after(self, key: Key, delay_s: float) -> None:
        """Note that the reconcile asked to be run again."""
        if key in self._taken_at and not self._failing:
            self._results[key] = "requeue_after"
        super().add_after(key, delay_s)

    def add_failed(self, key: Key) -> float:
        """Note that the reconcile failed."""
        self._retries.inc()
        if key in self._taken_at:
            self._errors.inc()
            self._results[key] = "error"
        self._failing = True
        try:
            return super().add_failed(key)
        finally:
            self._failing = False

    def done(self, key: Key) -> None:
        """Measure the reconcile that ends here."""
        took_s = self._time() - self._taken_at.pop(key)
        self._work_time.observe(took_s)
        self._reconcile_time.observe(took_s)
        result = self._results.pop(key, "success")
        self._metrics.reconciles.labels(self._controller, result).inc()
        super().done(key)


def count_requests(metrics: Metrics, clock: Clock) -> aiohttp.TraceConfig:
    """An observer for `HttpApi` that counts requests and compares clocks."""
    told = False

    async def begin(
        _session: aiohttp.ClientSession,
        context: SimpleNamespace,
        _params: aiohttp.TraceRequestStartParams,
    ) -> None:
        context.began = clock.now()

    async def end(
        _session: aiohttp.ClientSession,
        context: SimpleNamespace,
        params: aiohttp.TraceRequestEndParams,
    ) -> None:
        nonlocal told
        host = params.url.authority
        metrics.requests.labels(str(params.response.status), params.method, host).inc()
        ended = clock.now()
        took_s = (ended - context.began).total_seconds()
        if not 0 <= took_s <= SKEW_TRUSTED_S or "Date" not in params.response.headers:
            return
        try:
            said = parsedate_to_datetime(params.response.headers["Date"])
        except ValueError:
            return
        # The header tells whole seconds, cut off: half of one is the best guess.
        skew_s = (said - ended).total_seconds() + took_s / 2 + 0.5
        metrics.clock_skew.set(skew_s)
        if abs(skew_s) > SKEW_WARNING_S and not told:
            logger.warning(
                "this machine's clock differs from the API server's by %.0f s: deadlines and times "
                "in status will be off by as much; set the clocks by NTP",
                abs(skew_s),
            )
        told = abs(skew_s) > SKEW_WARNING_S

    async def fail(
        _session: aiohttp.ClientSession,
        _context: SimpleNamespace,
        params: aiohttp.TraceRequestExceptionParams,
    ) -> None:
        metrics.requests.labels("<error>", params.method, params.url.authority).inc()

    trace = aiohttp.TraceConfig()
    trace.on_request_start.append(begin)
    trace.on_request_end.append(end)
    trace.on_request_exception.append(fail)
    return trace
