from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from trainwright.api import kinds
from trainwright.base.errors import Reason
from trainwright.core.admission import Request
from trainwright.core.pods.admission import default_pod, find_pod_errors, validate_pod


def make_pod(container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c", "image": "x:1", **(container or {})}], **spec},
    }


def make_request(new: dict[str, Any], old: dict[str, Any] | None = None) -> Request:
    return Request(
        kind=kinds.POD,
        new=new,
        old=old,
        lookup=lambda kind, namespace, name: {"value": 9} if name == "high" else None,
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )


def test_new_pod_is_admitted_with_phase_and_priority() -> None:
    pod = default_pod(make_request(make_pod(priorityClassName="high")))
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert (pod["spec"]["priority"], pod["spec"]["serviceAccountName"]) == (9, "default")
    assert validate_pod(make_request(pod)).errors == []
    assert default_pod(make_request(pod, pod)) == pod


def test_new_pod_needs_a_priority_class_that_exists() -> None:
    errors = validate_pod(make_request(make_pod(priorityClassName="low"))).errors
    assert [(e.reason, e.path) for e in errors] == [(Reason.FORBIDDEN, "spec.priorityClassName")]


C = "spec.containers[0]"
R, V, N, D = Reason.REQUIRED, Reason.INVALID, Reason.NOT_SUPPORTED, Reason.DUPLICATE


@pytest.mark.parametrize(
    ("container", "reason", "path"),
    [
        ({"name": "Node_A"}, V, f"{C}.name"),
        ({"name": ""}, R, f"{C}.name"),
        ({"image": ""}, R, f"{C}.image"),
        ({"imagePullPolicy": "Sometimes"}, N, f"{C}.imagePullPolicy"),
        ({"env": [{"name": "A=B", "value": "1"}]}, V, f"{C}.env[0].name"),
        ({"env": [{"name": "Ä"}]}, V, f"{C}.env[0].name"),
        ({"env": [{"name": ""}]}, R, f"{C}.env[0].name"),
        ({"env": [{"name": "A", "valueFrom": {}}]}, V, f"{C}.env[0].valueFrom"),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}]},
            N,
            f"{C}.env[0].valueFrom.fieldRef.fieldPath",
        ),
        ({"envFrom": [{"secretRef": {}}]}, R, f"{C}.envFrom[0].secretRef.name"),
        ({"ports": [{"containerPort": 70000}]}, V, f"{C}.ports[0].containerPort"),
        ({"ports": [{"name": "UP", "containerPort": 1}]}, V, f"{C}.ports[0].name"),
        ({"volumeMounts": [{"name": "x", "mountPath": "/a"}]}, V, f"{C}.volumeMounts[0].name"),
        ({"volumeMounts": [{"name": "v", "mountPath": "a"}]}, V, f"{C}.volumeMounts[0].mountPath"),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/a/../b"}]},
            V,
            f"{C}.volumeMounts[0].mountPath",
        ),
        ({"volumeMounts": [{"name": "v"}]}, R, f"{C}.volumeMounts[0].mountPath"),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/a", "subPath": "../x"}]},
            V,
            f"{C}.volumeMounts[0].subPath",
        ),
        ({"resources": {"limits": {"cpu": "-1"}}}, V, f"{C}.resources.limits[cpu]"),
        ({"resources": {"limits": {"cpu": "1x"}}}, V, f"{C}.resources.limits[cpu]"),
        ({"resources": {"limits": {"gpu": "1"}}}, V, f"{C}.resources.limits[gpu]"),
        (
            {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1001m"}}},
            V,
            f"{C}.resources.requests",
        ),
        ({"resources": {"requests": {"nvidia.com/gpu": "1"}}}, R, f"{C}.resources.limits"),
        ({"readinessProbe": {"periodSeconds": 1}}, R, f"{C}.readinessProbe"),
        (
            {"livenessProbe": {"exec": {"command": ["x"]}, "successThreshold": 2}},
            V,
            f"{C}.livenessProbe.successThreshold",
        ),
    ],
)
def test_container_is_refused_at(container: dict[str, Any], reason: Reason, path: str) -> None:
    pod = make_pod(container, volumes=[{"name": "v", "emptyDir": {}}])
    assert [(e.reason, e.path) for e in find_pod_errors(pod, None)] == [(reason, path)]


@pytest.mark.parametrize(
    ("spec", "reason", "path"),
    [
        ({"containers": []}, R, "spec.containers"),
        ({"restartPolicy": "Maybe"}, N, "spec.restartPolicy"),
        ({"dnsPolicy": "No"}, N, "spec.dnsPolicy"),
        ({"hostname": "a.b"}, V, "spec.hostname"),
        ({"activeDeadlineSeconds": 0}, V, "spec.activeDeadlineSeconds"),
        ({"volumes": [{"name": "A", "emptyDir": {}}]}, V, "spec.volumes[0].name"),
        (
            {"volumes": [{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}]},
            D,
            "spec.volumes[1].name",
        ),
        (
            {"volumes": [{"name": "a", "emptyDir": {}, "secret": {"secretName": "s"}}]},
            Reason.FORBIDDEN,
            "spec.volumes[0].secret",
        ),
        (
            {"volumes": [{"name": "a", "configMap": {"name": "m", "items": [{"key": "k", "path": "../x"}]}}]},
            V,
            "spec.volumes[0].configMap.items[0].path",
        ),
        ({"tolerations": [{"value": "x"}]}, V, "spec.tolerations[0].operator"),
        ({"initContainers": [{"name": "c", "image": "x"}]}, D, "spec.initContainers[0].name"),
        (
            {"initContainers": [{"name": "i", "image": "x", "lifecycle": {}}]},
            Reason.FORBIDDEN,
            "spec.initContainers[0].lifecycle",
        ),
    ],
)  # fmt: skip
def test_pod_spec_is_refused_at(spec: dict[str, Any], reason: Reason, path: str) -> None:
    found = find_pod_errors(make_pod(**spec), None)
    assert [(e.reason, e.path) for e in found] == [(reason, path)]


def test_env_may_repeat_a_name_and_hold_odd_ascii() -> None:
    env = [{"name": "a.b-c d", "value": "1"}, {"name": "a.b-c d", "value": "2"}]
    assert find_pod_errors(make_pod({"env": env}), None) == []


def old_pod(**spec: Any) -> dict[str, Any]:
    return default_pod(make_request(make_pod(**spec)))


@pytest.mark.parametrize(
    "change",
    [
        {"activeDeadlineSeconds": 5},
        {"schedulingGates": []},
        {"nodeSelector": {"a": "b"}},
        {"tolerations": [{"key": "x", "operator": "Exists"}]},
    ],
)
def test_update_of_a_gated_pod_may_change(change: dict[str, Any]) -> None:
    old = old_pod(schedulingGates=[{"name": "a.b/c"}])
    change = copy.deepcopy(change)
    if "tolerations" in change:
        change["tolerations"] = old["spec"]["tolerations"] + change["tolerations"]
    assert find_pod_errors({**old, "spec": {**old["spec"], **change}}, old) == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"restartPolicy": "Never"}, "spec"),
        ({"nodeSelector": {"a": "b"}}, "spec"),
        ({"nodeName": "other"}, "spec"),
        ({"tolerations": []}, "spec.tolerations"),
        ({"activeDeadlineSeconds": 99}, "spec.activeDeadlineSeconds"),
        ({"activeDeadlineSeconds": None}, "spec.activeDeadlineSeconds"),
        ({"schedulingGates": [{"name": "a/b"}]}, "spec.schedulingGates[0].name"),
        ({"containers": []}, "spec"),
    ],
)
def test_update_of_a_running_pod_may_not_change(change: dict[str, Any], path: str) -> None:
    old = old_pod(activeDeadlineSeconds=9)
    found = find_pod_errors({**old, "spec": {**old["spec"], **change}}, old)
    assert [error.path for error in found] == [path]


def test_update_may_change_only_the_image_of_a_container() -> None:
    old = old_pod()
    new = copy.deepcopy(old)
    new["spec"]["containers"][0]["image"] = "x:2"
    assert find_pod_errors(new, old) == []
    new["spec"]["containers"][0]["args"] = ["y"]
    (error,) = find_pod_errors(new, old)
    assert error.reason is Reason.FORBIDDEN
    assert error.detail.endswith("changed here: containers")
