from __future__ import annotations

from tests.unit.core.jobset.factories import make_jobset, make_replicated_job
from trainwright.core.jobset.children import build_claims, build_job, build_service

OWNER = [
    {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "name": "js",
        "uid": "u1",
        "controller": True,
        "blockOwnerDeletion": True,
    }
]


def test_job_carries_the_same_marks_as_its_pods() -> None:
    worker = make_replicated_job("node", replicas=2)
    worker["template"]["metadata"] = {"labels": {"mine": "1"}}
    jobset = make_jobset(
        make_replicated_job("init", replicas=3, groupName="g"),
        worker,
        coordinator={"replicatedJob": "node", "podIndex": 1},
        status={"restarts": 2},
    )
    jobset["metadata"]["annotations"] = {
        "alpha.jobset.sigs.k8s.io/exclusive-topology": "rack",
        "other": "x",
    }
    job = build_job(jobset, worker, 1)
    marks = {
        "jobset.sigs.k8s.io/jobset-name": "js",
        "jobset.sigs.k8s.io/jobset-uid": "u1",
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
        "jobset.sigs.k8s.io/replicatedjob-replicas": "2",
        "jobset.sigs.k8s.io/global-replicas": "5",
        "jobset.sigs.k8s.io/job-index": "1",
        "jobset.sigs.k8s.io/job-global-index": "4",
        "jobset.sigs.k8s.io/job-key": "caf28231147dd6f606e2ef9fc26d19d6213fe88c",
        "jobset.sigs.k8s.io/restart-attempt": "2",
        "jobset.sigs.k8s.io/group-name": "default",
        "jobset.sigs.k8s.io/group-replicas": "2",
        "jobset.sigs.k8s.io/job-group-index": "1",
        "jobset.sigs.k8s.io/coordinator": "js-node-0-1.js",
    }
    placement = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
    assert job["metadata"] == {
        "name": "js-node-1",
        "namespace": "team",
        "labels": {"mine": "1", **marks},
        "annotations": {**marks, **placement},
        "ownerReferences": OWNER,
    }
    assert job["spec"]["suspend"] is False
    assert job["spec"]["template"]["metadata"] == {
        "labels": marks,
        "annotations": {**marks, **placement},
    }
    assert job["spec"]["template"]["spec"]["subdomain"] == "js"
    assert "suspend" not in worker["template"]["spec"]


def test_service_is_headless_and_selects_the_jobset() -> None:
    jobset = make_jobset(network={"subdomain": "net", "publishNotReadyAddresses": False})
    service = build_service(jobset)
    assert service["metadata"] == {"name": "net", "namespace": "team", "ownerReferences": OWNER}
    assert service["spec"] == {
        "clusterIP": "None",
        "selector": {"jobset.sigs.k8s.io/jobset-name": "js"},
        "publishNotReadyAddresses": False,
    }


def test_claims_are_owned_unless_retained_and_mounted_where_named() -> None:
    worker = make_replicated_job()
    pod = worker["template"]["spec"]["template"]["spec"]
    pod["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    policies = [
        {"templates": [{"metadata": {"name": "data"}, "spec": {}}]},
        {
            "templates": [{"metadata": {"name": "keep"}, "spec": {}}],
            "retentionPolicy": {"whenDeleted": "Retain"},
        },
    ]
    jobset = make_jobset(worker, volumeClaimPolicies=policies)
    data, keep = build_claims(jobset)
    assert data["metadata"]["name"] == "data-js"
    assert data["metadata"]["ownerReferences"] == OWNER
    assert "ownerReferences" not in keep["metadata"]
    job = build_job(jobset, worker, 0)
    assert job["spec"]["template"]["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-js"}}
    ]
