from __future__ import annotations

from typing import Any

import pytest

from trainwright.api import kinds
from trainwright.core.quota.quotas import (
    build_quota_status,
    count_usage,
    find_quota_excess,
    find_unstated_resources,
    sum_pod_resources,
    sum_usage,
)


def make_quota(hard: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}}


def make_pod(cpu: str = "500m", **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}, "limits": {"cpu": "1", "nvidia.com/gpu": "1"}}
    return {"spec": {"containers": [{"name": "a", "resources": resources}], **spec}}


def test_object_count_is_refused_in_kubernetes_words() -> None:
    quota = make_quota({"count/jobsets.jobset.x-k8s.io": "0"})
    excess = find_quota_excess(kinds.JOBSET, {}, [quota], {})
    assert excess is not None
    assert excess.message == (
        "exceeded quota: q, requested: count/jobsets.jobset.x-k8s.io=1, "
        "used: count/jobsets.jobset.x-k8s.io=0, limited: count/jobsets.jobset.x-k8s.io=0"
    )
    assert find_quota_excess(kinds.JOB, {}, [quota], {}) is None


@pytest.mark.parametrize(
    ("used", "refused"), [("1", False), ("1500m", False), ("1501m", True), ("2", True)]
)
def test_requests_fit_or_not(used: str, refused: bool) -> None:
    quota = make_quota({"requests.cpu": "2", "pods": "9"})
    excess = find_quota_excess(kinds.POD, make_pod(), [quota], {"requests.cpu": used})
    assert (excess is not None) is refused


def test_pod_counts_until_it_has_finished() -> None:
    pod = make_pod()
    assert count_usage(kinds.POD, pod) == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "500m",
        "requests.cpu": "500m",
        "limits.cpu": "1",
        "limits.nvidia.com/gpu": "1",
    }
    assert count_usage(kinds.POD, {**pod, "status": {"phase": "Failed"}}) == {"count/pods": "1"}
    total = sum_usage(count_usage(kinds.POD, pod) for _ in range(3))
    assert (total["pods"], total["requests.cpu"]) == ("3", "1500m")


def test_pod_asks_for_its_containers_or_its_largest_step() -> None:
    def container(cpu: str, **more: Any) -> dict[str, Any]:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    pod = {
        "spec": {
            "containers": [container("1"), container("500m")],
            "initContainers": [container("1", restartPolicy="Always"), container("3")],
        }
    }
    assert sum_pod_resources(pod, "requests") == {"cpu": "4"}


def test_pod_must_state_what_a_quota_limits() -> None:
    quota = make_quota({"requests.memory": "1Gi", "limits.cpu": "4", "pods": "1"})
    assert find_unstated_resources(make_pod(), [quota]) == (
        "failed quota: q: must specify requests.memory"
    )
    assert find_unstated_resources(make_pod(), [make_quota({"pods": "1"})]) is None


@pytest.mark.parametrize(
    ("spec", "covered"),
    [
        ({"scopes": ["Terminating"]}, False),
        ({"scopes": ["NotTerminating", "NotBestEffort"]}, True),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [
                        {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
                    ]
                }
            },
            True,
        ),
    ],
)
def test_scopes_choose_pods(spec: dict[str, Any], covered: bool) -> None:
    quota = make_quota({"pods": "0"}, **spec)
    pod = make_pod(priorityClassName="high")
    assert (find_quota_excess(kinds.POD, pod, [quota], {}) is not None) is covered


def test_status_shows_limits_and_use() -> None:
    quota = make_quota({"pods": "2", "requests.cpu": "1000m"})
    assert build_quota_status(quota, {"pods": "1", "secrets": "4"}) == {
        "hard": {"pods": "2", "requests.cpu": "1"},
        "used": {"pods": "1", "requests.cpu": "0"},
    }
