"""Queue managers write whole jobs back, with defaults filled in, again and again: that is no change.

Bytes differ then, meaning does not. Each manager keeps one entry, however often it sends it.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.planes import make_trainjob
from trainwright.api.kinds import TRAINJOB
from trainwright.base.errors import ApiError, Forbidden, Invalid
from trainwright.machinery.api import PatchType

if TYPE_CHECKING:
    from trainwright.base.objects import Object
    from trainwright.server.inprocess import InProcessApi

MANAGER = "acme.io/storage"
POD = {
    "volumes": [
        {"name": "settings", "configMap": {"name": "settings"}},
        {"name": "token", "secret": {"secretName": "token", "items": [{"key": "a", "path": "a"}]}},
        {"name": "scratch", "emptyDir": {}},
    ],
    "containers": [{"name": "node", "volumeMounts": [{"name": "settings", "mountPath": "/s"}]}],
    "nodeSelector": {"zone": "a"},
}


def make_patch(pod: Object, manager: str = MANAGER) -> Object:
    job = {"name": "node", "template": {"spec": {"template": {"spec": deepcopy(pod)}}}}
    template = {"spec": {"replicatedJobs": [job]}}
    return {"manager": manager, "trainingRuntimeSpec": {"template": template}}


def pod_of(job: Object, entry: int = 0) -> Object:
    template = job["spec"]["runtimePatches"][entry]["trainingRuntimeSpec"]["template"]
    pod: Object = template["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return pod


def fill_in_defaults(job: Object) -> Object:
    """What a client with the types of Kubernetes may send for the same job."""
    full = deepcopy(job)
    pod = pod_of(full)
    for volume in pod["volumes"]:
        for source in ("configMap", "secret"):
            if source in volume:
                volume[source]["defaultMode"] = 420
    container = pod["containers"][0]
    container |= {"env": [], "securityContext": {}}
    container["volumeMounts"][0]["readOnly"] = False
    pod |= {"tolerations": [], "imagePullSecrets": [], "securityContext": {}}
    job_patch = full["spec"]["runtimePatches"][0]["trainingRuntimeSpec"]["template"]
    job_patch["metadata"] = {}
    full["spec"]["trainer"]["resourcesPerNode"]["limits"]["cpu"] = "2"
    full["spec"]["trainer"]["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] = "v1"
    return full


async def create(api: InProcessApi, **spec: Any) -> Object:
    job = make_trainjob("tj", ["true"], runtime="plain", **spec)
    job["metadata"]["namespace"] = "default"
    job["spec"]["trainer"] |= {
        "resourcesPerNode": {"limits": {"cpu": 2}},
        "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
    }
    return await api.create(TRAINJOB, job, field_manager="test")


async def write_back(api: InProcessApi, job: Object) -> Object:
    return await api.replace(TRAINJOB, job, field_manager="queue")


async def test_a_running_job_that_is_written_back_with_defaults_is_unchanged(
    api: InProcessApi,
) -> None:
    job = await create(api, runtimePatches=[make_patch(POD)])
    written = await write_back(api, fill_in_defaults(job))
    assert written["spec"] == job["spec"]
    assert written["metadata"]["generation"] == job["metadata"]["generation"]


async def test_a_full_write_that_resumes_a_job_is_accepted(api: InProcessApi) -> None:
    job = await create(api, suspend=True, runtimePatches=[make_patch(POD)])
    resumed = fill_in_defaults(job)
    resumed["spec"]["suspend"] = False
    written = await write_back(api, resumed)
    assert written["spec"] == {**job["spec"], "suspend": False}


async def test_an_entry_that_is_added_with_the_resuming_write_is_kept(api: InProcessApi) -> None:
    job = await create(api, suspend=True, runtimePatches=[make_patch(POD)])
    resumed = fill_in_defaults(job)
    resumed["spec"]["suspend"] = False
    queue = make_patch({"nodeSelector": {"pool": "b"}}, "kueue.x-k8s.io/manager")
    resumed["spec"]["runtimePatches"].append(queue)
    written = await write_back(api, resumed)
    managers = [entry["manager"] for entry in written["spec"]["runtimePatches"]]
    assert managers == [MANAGER, "kueue.x-k8s.io/manager"]
    assert pod_of(written) == POD


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        (("volumes", 0, "configMap", "defaultMode"), 0o400, Invalid),
        (("volumes", 2, "emptyDir", "medium"), "Memory", Invalid),
        (("containers", 0, "volumeMounts", 0, "readOnly"), True, Invalid),
        (("nodeSelector", "zone"), "b", Forbidden),
    ],
)
async def test_a_change_of_meaning_is_refused_while_the_job_runs(
    api: InProcessApi, path: tuple[str | int, ...], value: object, error: type[ApiError]
) -> None:
    job = await create(api, runtimePatches=[make_patch(POD)])
    changed = deepcopy(job)
    *parents, last = path
    place: Any = pod_of(changed)
    for step in parents:
        place = place[step]
    place[last] = value
    with pytest.raises(error, match="runtimePatches"):
        await write_back(api, changed)
    assert await api.get(TRAINJOB, "default", "tj") == job


@pytest.mark.parametrize("type", [PatchType.MERGE, PatchType.APPLY])
async def test_a_manager_that_sends_its_entry_five_times_has_one(
    api: InProcessApi, type: PatchType
) -> None:
    await create(api, suspend=True)
    body = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "tj", "namespace": "default"},
        "spec": {"runtimePatches": [make_patch(POD)]},
    }
    written = [
        await api.patch(TRAINJOB, "default", "tj", deepcopy(body), type=type, field_manager="queue")
        for _ in range(5)
    ]
    assert [len(job["spec"]["runtimePatches"]) for job in written] == [1] * 5
    assert all(job == written[0] for job in written)


async def test_two_entries_of_one_manager_are_refused(api: InProcessApi) -> None:
    with pytest.raises(Invalid, match="Duplicate"):
        await create(api, suspend=True, runtimePatches=[make_patch(POD), make_patch(POD)])


async def test_a_manifest_of_an_older_trainer_adds_its_entry_once(api: InProcessApi) -> None:
    old = make_trainjob("old", ["true"], runtime="plain", suspend=True)
    old["metadata"]["namespace"] = "default"
    old["spec"]["podTemplateOverrides"] = [
        {"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"zone": "a"}}}
    ]
    first = None
    for _ in range(5):
        job = await api.patch(
            TRAINJOB,
            "default",
            "old",
            deepcopy(old),
            type=PatchType.APPLY,
            field_manager="user",
            force=True,
        )
        first = first or job
        assert len(job["spec"]["runtimePatches"]) == 1
    assert first is not None
    assert job["spec"] == first["spec"]
