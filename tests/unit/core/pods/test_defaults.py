from __future__ import annotations

from typing import Any

import pytest

from trainwright.core.pods.defaults import (
    add_admitted_parts,
    canonical_resources,
    compute_qos_class,
    default_pod_spec,
    default_pod_template,
    default_pull_policy,
)


def test_template_gets_the_defaults_of_templates_and_keeps_its_input() -> None:
    template: dict[str, Any] = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "node", "image": "x:1", "resources": {"limits": {"cpu": "1"}}}],
        },
    }
    assert default_pod_template(template) == {
        "metadata": {"labels": {"a": "b"}},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "containers": [
                {
                    "name": "node",
                    "image": "x:1",
                    "imagePullPolicy": "IfNotPresent",
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "resources": {"limits": {"cpu": "1"}},
                }
            ],
        },
    }
    assert "imagePullPolicy" not in template["spec"]["containers"][0]


def test_pod_takes_requests_from_limits_and_is_stable() -> None:
    spec = default_pod_spec(
        {
            "containers": [
                {
                    "name": "a",
                    "image": "x",
                    "resources": {
                        "limits": {"cpu": "1", "memory": "1Gi"},
                        "requests": {"cpu": "0.5"},
                    },
                }
            ]
        }
    )
    assert spec["enableServiceLinks"] is True
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert default_pod_spec(spec) == spec


def test_container_parts_get_their_own_defaults() -> None:
    container = {
        "name": "a",
        "image": "x:1",
        "ports": [{"containerPort": 80}],
        "env": [
            {"name": "P", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "R", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        ],
        "readinessProbe": {"httpGet": {"port": 80}},
        "lifecycle": {"preStop": {"httpGet": {"port": 80, "path": "/x"}}},
    }
    new = default_pod_spec({"containers": [container]})["containers"][0]
    assert new["ports"] == [{"protocol": "TCP", "containerPort": 80}]
    assert new["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert new["env"][1]["valueFrom"]["resourceFieldRef"]["divisor"] == "0"
    assert new["readinessProbe"] == {
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
        "httpGet": {"path": "/", "scheme": "HTTP", "port": 80},
    }
    assert new["lifecycle"]["preStop"]["httpGet"] == {"path": "/x", "scheme": "HTTP", "port": 80}


def test_volumes_get_modes_and_an_empty_one_becomes_emptydir() -> None:
    volumes: list[dict[str, Any]] = [
        {"name": "e"},
        {"name": "c", "configMap": {"name": "m"}},
        {"name": "s", "secret": {"secretName": "m", "defaultMode": 256}},
        {
            "name": "p",
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"path": "token"}},
                    {
                        "downwardAPI": {
                            "items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]
                        }
                    },
                ]
            },
        },
    ]
    new = default_pod_spec({"volumes": volumes})["volumes"]
    assert new[0] == {"name": "e", "emptyDir": {}}
    assert new[1]["configMap"] == {"name": "m", "defaultMode": 420}
    assert new[2]["secret"]["defaultMode"] == 256
    sources = new[3]["projected"]["sources"]
    assert sources[0]["serviceAccountToken"] == {"path": "token", "expirationSeconds": 3600}
    assert sources[1]["downwardAPI"]["items"][0]["fieldRef"]["apiVersion"] == "v1"
    assert "defaultMode" not in volumes[1]["configMap"]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("x", "Always"),
        ("x:latest", "Always"),
        ("reg:5000/x", "Always"),
        ("reg:5000/x:1", "IfNotPresent"),
        ("x@sha256:abc", "IfNotPresent"),
        ("", "Always"),
    ],
)
def test_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    assert default_pull_policy(image) == policy


def test_admission_adds_account_priority_and_missing_tolerations_once() -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    spec = add_admitted_parts({"tolerations": [own]}, priority=7)
    assert (spec["serviceAccountName"], spec["priority"]) == ("default", 7)
    assert [t["key"] for t in spec["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    assert add_admitted_parts(spec, priority=7) == spec
    assert add_admitted_parts({"tolerations": [{"operator": "Exists"}]}, priority=0)[
        "tolerations"
    ] == [{"operator": "Exists"}]


@pytest.mark.parametrize(
    ("resources", "qos"),
    [
        ({}, "BestEffort"),
        ({"limits": {"nvidia.com/gpu": "1"}}, "BestEffort"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"requests": {"cpu": "1", "memory": "1Gi"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
    ],
)
def test_qos_class_follows_cpu_and_memory(resources: dict[str, Any], qos: str) -> None:
    assert compute_qos_class({"containers": [{"resources": resources}]}) == qos


def test_amounts_are_stored_in_their_canonical_form() -> None:
    resources = {"limits": {"cpu": 1, "memory": "1024Mi"}, "requests": {"cpu": "1x"}}
    assert canonical_resources(resources) == {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "1x"},
    }
