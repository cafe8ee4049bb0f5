"""What a cluster is told about our webhooks."""

from __future__ import annotations

import base64

from trainwright.webhooks.configurations import (
    ServiceClient,
    UrlClient,
    build_webhook_configurations,
    with_bundle,
)

GROUP = "trainer-kubeflow-org-v1alpha1"
CONTRACT = [
    ("defaulter.trainjob", f"/mutate-{GROUP}-trainjob", "trainjobs", False),
    (
        "validator.clustertrainingruntime",
        f"/validate-{GROUP}-clustertrainingruntime",
        "clustertrainingruntimes",
        True,
    ),
    (
        "validator.trainingruntime",
        f"/validate-{GROUP}-trainingruntime",
        "trainingruntimes",
        True,
    ),
    ("validator.trainjob", f"/validate-{GROUP}-trainjob", "trainjobs", False),
]


def test_the_configurations_are_those_of_the_contract() -> None:
    made = build_webhook_configurations(ServiceClient(name="manager", namespace="ns"), b"ca")
    assert [obj["metadata"]["name"] for obj in made] == [
        "defaulter.trainer.kubeflow.org",
        "validator.trainer.kubeflow.org",
    ]
    hooks = [hook for obj in made for hook in obj["webhooks"]]
    for hook, (name, path, resources, selects) in zip(hooks, CONTRACT, strict=True):
        assert hook["name"] == f"{name}.trainer.kubeflow.org"
        service = {"name": "manager", "namespace": "ns", "path": path, "port": 443}
        ca = base64.b64encode(b"ca").decode()
        assert hook["clientConfig"] == {"service": service, "caBundle": ca}
        assert (hook["failurePolicy"], hook["sideEffects"]) == ("Fail", "None")
        assert hook["admissionReviewVersions"] == ["v1"]
        (rule,) = hook["rules"]
        assert (rule["resources"], rule["operations"]) == ([resources], ["CREATE", "UPDATE"])
        assert (rule["apiGroups"], rule["apiVersions"]) == (["trainer.kubeflow.org"], ["v1alpha1"])
        assert ("objectSelector" in hook) is selects
    selector = hooks[1]["objectSelector"]["matchExpressions"]
    key = "trainer.kubeflow.org/webhook-validation"
    assert selector == [{"key": key, "operator": "NotIn", "values": ["disabled"]}]


def test_outside_a_cluster_webhooks_have_urls() -> None:
    made = build_webhook_configurations(UrlClient(url="https://127.0.0.1:9443/"), labels={"a": "b"})
    assert made[0]["metadata"]["labels"] == {"a": "b"}
    url = f"https://127.0.0.1:9443/mutate-{GROUP}-trainjob"
    assert made[0]["webhooks"][0]["clientConfig"] == {"url": url}


def test_only_a_missing_bundle_is_put_in() -> None:
    client = ServiceClient(name="manager")
    _, bare = build_webhook_configurations(client)
    _, full = build_webhook_configurations(client, b"ca")
    assert with_bundle(full, b"ca") is full
    foreign = {**bare["webhooks"][0], "name": "another"}
    mixed = {**bare, "webhooks": [foreign, *full["webhooks"]]}
    changed = with_bundle(mixed, b"ca")
    assert changed["webhooks"][1:] == full["webhooks"]
    assert changed["webhooks"][0]["clientConfig"]["caBundle"] == base64.b64encode(b"ca").decode()
    assert mixed["webhooks"][0] is foreign
    assert "caBundle" not in foreign["clientConfig"]
