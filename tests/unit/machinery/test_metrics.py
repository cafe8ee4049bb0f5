from __future__ import annotations

from trainwright.machinery.clock import SystemClock
from trainwright.machinery.metrics import MeasuredQueue, Metrics
from trainwright.machinery.workqueue import Key

A, B = Key("n", "a"), Key("n", "b")


def value(metrics: Metrics, metric: str, /, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(metric, labels)


async def test_a_queue_tells_of_its_reconciles() -> None:
    metrics = Metrics()
    queue = MeasuredQueue(SystemClock(), metrics, "c")
    both = {"name": "c", "controller": "c"}
    queue.add(A)
    queue.add(A)
    queue.add(B)
    assert value(metrics, "workqueue_depth", **both) == 2
    assert value(metrics, "workqueue_adds_total", **both) == 2
    assert await queue.take() == A
    queue.add(A)  # changed meanwhile: runs again
    assert value(metrics, "controller_runtime_active_workers", controller="c") == 1
    assert (value(metrics, "workqueue_unfinished_work_seconds", **both) or 0) > 0
    queue.forget(A)
    queue.done(A)
    assert await queue.take() == B
    queue.add_failed(B)
    queue.done(B)
    assert await queue.take() == A
    queue.add_after(A, 60)
    queue.done(A)
    for result, count in (("success", 1), ("error", 1), ("requeue_after", 1)):
        found = value(metrics, "controller_runtime_reconcile_total", controller="c", result=result)
        assert found == count, result
    assert value(metrics, "controller_runtime_reconcile_errors_total", controller="c") == 1
    assert value(metrics, "controller_runtime_reconcile_panics_total", controller="c") == 0
    assert value(metrics, "controller_runtime_reconcile_time_seconds_count", controller="c") == 3
    assert value(metrics, "workqueue_work_duration_seconds_count", **both) == 3
    assert value(metrics, "workqueue_queue_duration_seconds_count", **both) == 3
    assert value(metrics, "workqueue_retries_total", **both) == 1
    assert value(metrics, "workqueue_longest_running_processor_seconds", **both) == 0
    queue.close()


def test_the_text_has_the_names_that_dashboards_read() -> None:
    metrics = Metrics()
    metrics.requests.labels("200", "GET", "api:443").inc()
    metrics.leader.labels("trainer.kubeflow.org").set(1)
    text = metrics.render().decode()
    assert 'rest_client_requests_total{code="200",host="api:443",method="GET"} 1.0' in text
    assert 'leader_election_master_status{name="trainer.kubeflow.org"} 1.0' in text
    assert "certwatcher_read_certificate_total 0.0" in text
    assert "_created" not in text
