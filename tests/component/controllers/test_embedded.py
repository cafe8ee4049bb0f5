from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tests.component.controllers.conftest import make, make_job_spec
from trainwright.api.kinds import (
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    EVENT,
    JOB,
    JOBSET,
    NAMESPACE,
    POD,
    RESOURCE_QUOTA,
    SERVICE,
    SERVICE_ACCOUNT,
    Kind,
)
from trainwright.base.errors import Conflict
from trainwright.base.objects import dig, is_condition_true, labels_of, name_of
from trainwright.machinery.api import DeleteOptions, PatchType

if TYPE_CHECKING:
    from tests.component.controllers.conftest import Cluster
    from trainwright.base.objects import Object

WIDGET = Kind("example.com", "v1", "Widget", "widgets", singular="widget")


def make_jobset(name: str = "js", namespace: str = "default", **spec: Any) -> Object:
    replicated_job = {"name": "node", "template": {"spec": make_job_spec()}}
    return make(JOBSET, name, namespace, spec={"replicatedJobs": [replicated_job], **spec})


def terminal_state(cluster: Cluster, name: str = "js") -> str:
    return str(dig(cluster.find(JOBSET, name), "status", "terminalState", default=""))


def are_pods_counted(cluster: Cluster) -> bool:
    return all(not dig(pod, "metadata", "finalizers") for pod in cluster.lister.list(POD))


async def test_jobset_runs_to_completion(cluster: Cluster) -> None:
    await cluster.create(JOBSET, make_jobset())
    await cluster.eventually(lambda: terminal_state(cluster) == "Completed")
    job = cluster.find(JOB, "js-node-0")
    assert dig(job, "status", "completedIndexes") == "0,1"
    selected = dig(job, "spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid")
    assert selected == dig(job, "metadata", "uid")
    await cluster.eventually(lambda: are_pods_counted(cluster))
    pods = cluster.lister.list(POD)
    assert {dig(pod, "spec", "hostname") for pod in pods} == {"js-node-0-0", "js-node-0-1"}
    assert {dig(pod, "spec", "nodeName") for pod in pods} == {"laptop"}
    assert cluster.find(SERVICE, "js") is not None
    await cluster.eventually(
        lambda: (
            {"SuccessfulCreate", "Completed", "AllJobsCompleted", "Scheduled"}
            <= {str(event["reason"]) for event in cluster.lister.list(EVENT)}
        )
    )


async def test_jobset_restarts_until_its_limit(cluster: Cluster) -> None:
    cluster.exit_code = lambda _: 3
    await cluster.create(JOBSET, make_jobset(failurePolicy={"maxRestarts": 2}))
    await cluster.eventually(lambda: terminal_state(cluster) == "Failed")
    jobset, job = cluster.find(JOBSET, "js"), cluster.find(JOB, "js-node-0")
    assert job is not None
    assert dig(jobset, "status", "restarts") == 2
    assert labels_of(job)["jobset.sigs.k8s.io/restart-attempt"] == "2"
    assert dig(job, "status", "failed") == 2
    assert dig(job, "status", "uncountedTerminatedPods") == {}


async def test_suspended_jobset_has_no_pods_until_it_is_resumed(cluster: Cluster) -> None:
    cluster.exit_code = lambda _: None
    await cluster.create(JOBSET, make_jobset())
    await cluster.eventually(lambda: dig(cluster.find(JOB, "js-node-0"), "status", "ready") == 2)

    async def suspend(value: bool) -> None:
        await cluster.api.patch(
            JOBSET, "default", "js", {"spec": {"suspend": value}},
            type=PatchType.MERGE, field_manager="test",
        )  # fmt: skip

    await suspend(True)
    await cluster.eventually(
        lambda: (
            not cluster.lister.list(POD)
            and is_condition_true(cluster.find(JOBSET, "js") or {}, "Suspended")
        )
    )
    cluster.exit_code = lambda _: 0
    await suspend(False)
    await cluster.eventually(lambda: terminal_state(cluster) == "Completed")
    assert dig(cluster.find(JOB, "js-node-0"), "status", "failed") is None


async def test_placement_set_by_a_queue_while_suspended_reaches_the_pods(cluster: Cluster) -> None:
    """What Kueue does: one update that sets node selector, toleration and label, and resumes."""
    await cluster.create(JOBSET, make_jobset(suspend=True))
    await cluster.eventually(
        lambda: is_condition_true(cluster.find(JOB, "js-node-0") or {}, "Suspended")
    )

    async def admit() -> None:
        jobset = await cluster.api.get(JOBSET, "default", "js")
        pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        pod["metadata"] = {"labels": {"queue": "q"}}
        pod["spec"] |= {
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"key": "k", "operator": "Exists"}],
        }
        jobset["spec"]["suspend"] = False
        await cluster.api.replace(JOBSET, jobset, field_manager="kueue")

    for _ in range(100):
        with suppress(Conflict):  # the controller may write the status in between
            await admit()
            break
    await cluster.eventually(lambda: terminal_state(cluster) == "Completed")
    for pod in cluster.lister.list(POD):
        assert labels_of(pod)["queue"] == "q"
        assert dig(pod, "spec", "nodeSelector") == {"kubernetes.io/os": "linux"}
        assert {"key": "k", "operator": "Exists"} in dig(pod, "spec", "tolerations")


async def test_foreground_deletion_takes_everything_along(cluster: Cluster) -> None:
    cluster.exit_code = lambda _: None
    await cluster.create(JOBSET, make_jobset())
    await cluster.eventually(lambda: dig(cluster.find(JOB, "js-node-0"), "status", "ready") == 2)
    options = DeleteOptions(propagation="Foreground")
    await cluster.api.delete(JOBSET, "default", "js", options)
    await cluster.eventually(lambda: cluster.find(JOBSET, "js") is None)
    assert [*cluster.lister.list(JOB), *cluster.lister.list(POD)] == []


async def test_job_deleted_without_a_policy_leaves_its_pods(cluster: Cluster) -> None:
    cluster.exit_code = lambda _: None
    await cluster.create(JOB, make(JOB, "j", "default", spec=make_job_spec()))
    await cluster.eventually(lambda: dig(cluster.find(JOB, "j"), "status", "ready") == 2)
    await cluster.api.delete(JOB, "default", "j")
    await cluster.eventually(lambda: cluster.find(JOB, "j") is None and are_pods_counted(cluster))
    pods = cluster.lister.list(POD)
    assert [dig(pod, "metadata", "ownerReferences") for pod in pods] == [None, None]
    assert {dig(pod, "status", "phase") for pod in pods} == {"Running"}


async def test_pod_that_fits_nowhere_says_why_and_can_be_deleted(cluster: Cluster) -> None:
    spec = make_job_spec()
    spec["template"]["spec"]["nodeSelector"] = {"gpu": "yes"}
    await cluster.create(JOB, make(JOB, "j", "default", spec=spec))

    def refused() -> bool:
        pods = cluster.lister.list(POD)
        return len(pods) == 2 and all(
            "node affinity/selector" in str(dig(pod, "status", "conditions", 0, "message"))
            for pod in pods
        )

    await cluster.eventually(refused)
    await cluster.api.delete(JOB, "default", "j", DeleteOptions(propagation="Background"))
    await cluster.eventually(lambda: not cluster.lister.list(POD))


async def test_refused_children_are_told_in_events(cluster: Cluster) -> None:
    def is_told(reason: str, text: str) -> bool:
        return any(
            event["reason"] == reason and text in str(event.get("message"))
            for event in cluster.lister.list(EVENT)
        )

    bad = make_jobset("bad")
    job = bad["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["template"]["spec"]["restartPolicy"] = "Always"
    await cluster.create(JOBSET, bad)
    await cluster.eventually(lambda: is_told("JobCreationFailed", "restartPolicy"))
    quota = make(RESOURCE_QUOTA, "q", "default", spec={"hard": {"count/pods": "0"}})
    await cluster.create(RESOURCE_QUOTA, quota)
    await cluster.create(JOB, make(JOB, "j", "default", spec=make_job_spec()))
    await cluster.eventually(lambda: is_told("FailedCreate", "quota"))


async def test_namespace_is_filled_and_emptied(cluster: Cluster) -> None:
    cluster.exit_code = lambda _: None
    await cluster.create(NAMESPACE, make(NAMESPACE, "team"))
    await cluster.eventually(
        lambda: (
            cluster.find(SERVICE_ACCOUNT, "default", "team")
            and cluster.find(CONFIG_MAP, "kube-root-ca.crt", "team")
        )
    )
    await cluster.create(JOBSET, make_jobset(namespace="team"))
    await cluster.eventually(lambda: len(cluster.lister.list(POD, "team")) == 2)
    await cluster.api.delete(NAMESPACE, "", "team")
    await cluster.eventually(lambda: cluster.find(NAMESPACE, "team", "") is None)
    left = [name_of(obj) for kind in (JOBSET, JOB, POD) for obj in cluster.lister.list(kind)]
    assert left == []


async def test_kinds_of_users_are_collected_too(cluster: Cluster) -> None:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    names = {"plural": "widgets", "kind": "Widget", "singular": "widget"}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    crd = make(CUSTOM_RESOURCE_DEFINITION, "widgets.example.com", spec=spec)
    await cluster.create(CUSTOM_RESOURCE_DEFINITION, crd)
    await cluster.create(NAMESPACE, make(NAMESPACE, "team"))
    owner = await cluster.create(WIDGET, make(WIDGET, "owner", "team"))
    reference = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "name": "owner",
        "uid": owner["metadata"]["uid"],
    }
    for kind in (WIDGET, CONFIG_MAP):
        owned = make(kind, "owned", "team")
        owned["metadata"]["ownerReferences"] = [reference]
        await cluster.create(kind, owned)
    await cluster.create(WIDGET, make(WIDGET, "other", "team"))
    await cluster.api.delete(WIDGET, "team", "owner")
    await cluster.eventually(
        lambda: not any(cluster.find(kind, "owned", "team") for kind in (WIDGET, CONFIG_MAP))
    )
    assert cluster.find(WIDGET, "other", "team") is not None
    await cluster.api.delete(NAMESPACE, "", "team")
    await cluster.eventually(lambda: cluster.find(NAMESPACE, "team", "") is None)
    assert cluster.find(WIDGET, "other", "team") is None
