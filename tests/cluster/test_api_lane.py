"""Our CRDs, client and JobSets against a real API server and the real JobSet controller."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from trainwright.api.kinds import CONFIG_MAP, JOBSET, NAMESPACE, TRAINJOB
from trainwright.api.trainjob import parse_runtime, parse_trainjob
from trainwright.base.errors import Conflict, Invalid, NotFound
from trainwright.base.objects import Object, dig, find_condition, resource_version_of, uid_of
from trainwright.core.runtimes import load_shipped_runtimes
from trainwright.core.trainjob.build import build_job, build_objects
from trainwright.machinery.api import DeleteOptions, PatchType, WatchType
from trainwright.machinery.client import HttpApi

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.cluster.api_lane import ApiLane

MANAGER = "lane-test"


@pytest.fixture
async def api(lane: ApiLane) -> AsyncIterator[HttpApi]:
    async with HttpApi(lane.connection) as client:
        yield client


async def make_namespace(api: HttpApi) -> str:
    obj: Object = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"generateName": "lane-"},
    }
    made = await api.create(NAMESPACE, obj, field_manager=MANAGER)
    return str(made["metadata"]["name"])


def make_config_map(namespace: str, name: str, **data: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


def make_trainjob(namespace: str, name: str = "t") -> Object:
    return {
        "apiVersion": TRAINJOB.api_version,
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"numNodes": 2}},
    }


def test_the_real_server_takes_our_crds_without_a_complaint(lane: ApiLane) -> None:
    crds = lane.get("crds")["items"]
    ours = [crd for crd in crds if crd["spec"]["group"] == "trainer.kubeflow.org"]
    assert len(ours) == 3
    for crd in ours:
        assert find_condition(crd, "NonStructuralSchema") is None
        accepted = find_condition(crd, "NamesAccepted")
        assert accepted is not None
        assert accepted["status"] == "True"


async def test_our_client_speaks_to_the_real_server(api: HttpApi) -> None:
    namespace = await make_namespace(api)
    made = await api.create(
        CONFIG_MAP, make_config_map(namespace, "a", x="1"), field_manager=MANAGER
    )
    stale = {**made, "metadata": {**made["metadata"], "resourceVersion": "1"}}
    with pytest.raises(Conflict):
        await api.replace(CONFIG_MAP, stale, field_manager=MANAGER)
    patched = await api.patch(
        CONFIG_MAP,
        namespace,
        "a",
        {"data": {"y": "2"}},
        type=PatchType.MERGE,
        field_manager=MANAGER,
    )
    assert patched["data"] == {"x": "1", "y": "2"}
    with pytest.raises(Conflict):
        await api.patch(
            CONFIG_MAP,
            namespace,
            "a",
            make_config_map(namespace, "a", x="3"),
            type=PatchType.APPLY,
            field_manager="another",
        )
    for number in range(5):
        await api.create(
            CONFIG_MAP, make_config_map(namespace, f"page-{number}"), field_manager=MANAGER
        )
    first = await api.list(CONFIG_MAP, namespace, limit=3)
    rest = await api.list(CONFIG_MAP, namespace, limit=50, continue_token=first.continue_token)
    assert len(first.items) == 3
    assert {"a", "page-4"} <= {i["metadata"]["name"] for i in (*first.items, *rest.items)}
    with pytest.raises(Conflict):
        await api.delete(CONFIG_MAP, namespace, "a", DeleteOptions(uid="other"))
    await api.delete(CONFIG_MAP, namespace, "a", DeleteOptions(uid=uid_of(made)))
    with pytest.raises(NotFound):
        await api.get(CONFIG_MAP, namespace, "a")


async def test_our_client_follows_changes(api: HttpApi) -> None:
    namespace = await make_namespace(api)
    start = (await api.list(CONFIG_MAP, namespace)).resource_version
    made = await api.create(CONFIG_MAP, make_config_map(namespace, "w"), field_manager=MANAGER)
    await api.delete(CONFIG_MAP, namespace, "w")
    seen = []
    async with asyncio.timeout(60):
        async for event in api.watch(CONFIG_MAP, namespace, resource_version=start):
            if dig(event.object, "metadata", "name") == "w":
                seen.append((event.type, uid_of(event.object)))
            if event.type is WatchType.DELETED:
                break
    assert seen == [(WatchType.ADDED, uid_of(made)), (WatchType.DELETED, uid_of(made))]
    assert int(resource_version_of(made)) > int(start)


async def test_our_schema_and_rules_refuse_there_what_they_refuse_here(api: HttpApi) -> None:
    namespace = await make_namespace(api)
    wrong = make_trainjob(namespace)
    wrong["spec"]["managedBy"] = "somebody"
    with pytest.raises(Invalid) as refusal:
        await api.create(TRAINJOB, wrong, field_manager=MANAGER)
    assert "spec.managedBy" in refusal.value.message
    made = await api.create(TRAINJOB, make_trainjob(namespace), field_manager=MANAGER)
    assert made["spec"]["suspend"] is False
    with pytest.raises(Invalid):
        await api.patch(
            TRAINJOB,
            namespace,
            "t",
            {"spec": {"runtimeRef": {"name": "other"}}},
            type=PatchType.MERGE,
            field_manager=MANAGER,
        )


async def test_the_real_jobset_webhook_takes_what_we_build(api: HttpApi) -> None:
    namespace = await make_namespace(api)
    runtimes = {runtime["metadata"]["name"]: runtime for runtime in load_shipped_runtimes()}
    for number, runtime in enumerate(runtimes.values()):
        trainjob = make_trainjob(namespace, f"built-{number}")
        trainjob["spec"] |= {"suspend": True, "runtimeRef": {"name": runtime["metadata"]["name"]}}
        stored = await api.create(TRAINJOB, trainjob, field_manager=MANAGER)
        (jobset,) = build_objects(build_job(parse_trainjob(stored), parse_runtime(runtime)))
        made = await api.patch(
            JOBSET,
            namespace,
            jobset["metadata"]["name"],
            jobset,
            type=PatchType.APPLY,
            field_manager="trainer",
            force=True,
        )
        assert made["spec"]["network"]["enableDNSHostnames"] is True
