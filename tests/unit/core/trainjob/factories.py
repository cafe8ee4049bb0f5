"""The smallest valid objects, so that a test shows only what matters to it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from trainwright.base.objects import Object, controller_reference

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
NOW_TEXT = "2026-03-04T05:06:07Z"
CREATED_TEXT = "2026-03-04T05:00:00Z"


def make_trainjob(name: str = "tj", *, status: Object | None = None, **spec: Any) -> Object:
    trainjob: Object = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {
            "name": name,
            "namespace": "ml",
            "uid": f"uid-{name}",
            "resourceVersion": "7",
            "creationTimestamp": CREATED_TEXT,
        },
        "spec": {
            "runtimeRef": {
                "apiGroup": "trainer.kubeflow.org",
                "kind": "ClusterTrainingRuntime",
                "name": "rt",
            },
            "managedBy": "trainer.kubeflow.org/trainjob-controller",
            "suspend": False,
            **spec,
        },
    }
    if status is not None:
        trainjob["status"] = status
    return trainjob


def make_job(name: str = "node", step: str = "trainer", **container: Any) -> Object:
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": step}
    main = {"name": "node" if step == "trainer" else name, "image": "base:1", **container}
    return {
        "name": name,
        "replicas": 1,
        "template": {
            "metadata": {"labels": labels} if step else {},
            "spec": {"template": {"spec": {"containers": [main]}}},
        },
    }


def make_runtime(
    *jobs: Object, ml_policy: Object | None = None, kind: str = "ClusterTrainingRuntime"
) -> Object:
    metadata: Object = {"name": "rt"}
    if kind == "TrainingRuntime":
        metadata["namespace"] = "ml"
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}} if ml_policy is None else ml_policy,
            "template": {"spec": {"replicatedJobs": list(jobs or (make_job(),))}},
        },
    }


def make_jobset(
    trainjob: Object, *, suspend: bool = False, status: Object | None = None, owned: bool = True
) -> Object:
    jobset: Object = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": trainjob["metadata"]["name"],
            "namespace": "ml",
            "uid": "uid-jobset",
            "generation": 1,
        },
        "spec": {"suspend": suspend, "replicatedJobs": []},
        "status": status or {},
    }
    if owned:
        jobset["metadata"]["ownerReferences"] = [controller_reference(trainjob)]
    return jobset


def make_condition(type_: str, status: str = "True", **fields: str) -> Object:
    return {
        "type": type_,
        "status": status,
        "reason": type_,
        "message": "",
        "lastTransitionTime": CREATED_TEXT,
        **fields,
    }
