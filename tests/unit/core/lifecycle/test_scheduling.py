from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from trainwright.core.lifecycle.scheduling import ObservedPod, plan_scheduling
from trainwright.core.plan import Patch, Plan

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
STAMP = "2026-01-02T03:04:05Z"
NODE = {
    "metadata": {"name": "laptop", "labels": {"kubernetes.io/os": "linux", "cores": "8"}},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "3"}},
}


def make_pod(*, cpu: str = "1", phase: str = "Pending", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "3"},
        "spec": {"containers": [container], **spec},
        "status": {"phase": phase},
    }


def plan(pod: dict[str, Any], *bound: dict[str, Any], node: dict[str, Any] | None = NODE) -> Plan:
    nodes = [node] if node else []
    return plan_scheduling(ObservedPod(pod=pod, nodes=nodes, bound=bound), NOW)


def why(plan: Plan) -> str:
    """The message of the condition that the plan writes, or "" when it binds."""
    if plan.status is None:
        return ""
    (condition,) = plan.status.patch["status"]["conditions"]
    assert condition["status"] == "False"
    return str(condition["message"])


def test_pod_is_bound_and_told_so() -> None:
    result = plan(make_pod())
    (binding,) = result.actions
    assert isinstance(binding, Patch)
    assert binding.subresource == "binding"
    assert binding.patch == {
        "spec": {"nodeName": "laptop"},
        "status": {
            "conditions": [{"type": "PodScheduled", "lastTransitionTime": STAMP, "status": "True"}]
        },
    }
    assert result.events[0].note == "Successfully assigned n/p to laptop"


def _affinity(operator: str, *values: str, key: str = "kubernetes.io/os") -> dict[str, Any]:
    expression = {"key": key, "operator": operator, "values": list(values)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


UNMATCHED = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        (make_pod(nodeSelector={"kubernetes.io/os": "linux"}), ""),
        (make_pod(nodeSelector={"gpu": "yes"}), UNMATCHED),
        (make_pod(affinity=_affinity("In", "linux")), ""),
        (make_pod(affinity=_affinity("NotIn", "linux")), UNMATCHED),
        (make_pod(affinity=_affinity("Gt", "4", key="cores")), ""),
        (make_pod(affinity=_affinity("DoesNotExist", key="cores")), UNMATCHED),
        (make_pod(cpu="5"), "0/1 nodes are available: 1 Insufficient cpu."),
        (
            make_pod(schedulingGates=[{"name": "g"}]),
            "Scheduling is blocked by scheduling gates: g",
        ),
    ],
)
def test_reasons_to_bind_or_not(pod: dict[str, Any], message: str) -> None:
    assert why(plan(pod)) == message


def test_resources_of_running_pods_are_taken() -> None:
    running = make_pod(cpu="3500m", nodeName="laptop")
    assert why(plan(make_pod(cpu="500m"), running)) == ""
    assert "Insufficient cpu" in why(plan(make_pod(cpu="501m"), running))
    three = [make_pod(cpu="0", nodeName="laptop")] * 3
    assert "Too many pods" in why(plan(make_pod(), *three))


def test_resource_that_the_node_lacks_is_named() -> None:
    pod = make_pod()
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    assert "Insufficient nvidia.com/gpu" in why(plan(pod))


def test_taint_needs_a_toleration() -> None:
    node = {**NODE, "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}}
    assert "untolerated taint {k: v}" in why(plan(make_pod(), node=node))
    tolerant = make_pod(tolerations=[{"key": "k", "operator": "Exists"}])
    assert why(plan(tolerant, node=node)) == ""


def test_same_refusal_is_not_written_twice() -> None:
    pod = make_pod(cpu="9")
    first = plan(pod)
    assert first.events[0].reason == "FailedScheduling"
    assert first.status is not None
    pod["status"] |= first.status.patch["status"]
    assert plan(pod) == Plan()


def test_pod_deleted_before_it_has_a_node_ends_as_failed() -> None:
    pod = make_pod()
    pod["metadata"]["deletionTimestamp"] = STAMP
    status = plan(pod).status
    assert status is not None
    assert status.patch == {"status": {"phase": "Failed"}}


def test_without_nodes_the_message_says_so() -> None:
    assert why(plan(make_pod(), node=None)) == "0/0 nodes are available: there is none yet."
