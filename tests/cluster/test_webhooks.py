"""A real API server that asks our webhooks, by URL."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.component.webhooks.clusters import running
from tests.unit.core.trainjob.factories import make_job, make_runtime, make_trainjob
from trainwright.api.kinds import NAMESPACE, SECRET, TRAINING_RUNTIME, TRAINJOB
from trainwright.base.errors import ApiError, Conflict, Forbidden, Invalid
from trainwright.machinery.api import PatchType
from trainwright.machinery.client import HttpApi
from trainwright.machinery.clock import SystemClock
from trainwright.webhooks.certificates import find_fault, read_material
from trainwright.webhooks.configurations import (
    CONFIGURATIONS,
    ServiceClient,
    UrlClient,
    build_webhook_configurations,
)
from trainwright.webhooks.server import WebhookServer, WebhookServerSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.cluster.api_lane import ApiLane
    from trainwright.base.objects import Object

LIMIT_S = 60


class Site:
    """A namespace whose objects our webhooks judge."""

    def __init__(self, api: HttpApi, namespace: str, warnings: list[str]) -> None:
        self.api, self.namespace, self.warnings = api, namespace, warnings

    def here(self, obj: Object, name: str = "") -> Object:
        metadata = {"name": name or obj["metadata"]["name"], "namespace": self.namespace}
        return {**obj, "metadata": {**obj["metadata"], **metadata}}

    async def create(self, obj: Object, name: str = "", *, dry_run: bool = False) -> Object:
        kind = TRAINJOB if obj["kind"] == TRAINJOB.kind else TRAINING_RUNTIME
        obj = self.here(obj, name)
        for field in ("uid", "resourceVersion", "creationTimestamp"):
            obj["metadata"].pop(field, None)
        return await self.api.create(kind, obj, field_manager="t", dry_run=dry_run)

    async def is_judged(self) -> bool:
        """Whether the API server asks the webhooks; it learns of configurations with a delay."""
        broken = make_runtime({**make_job(), "replicas": 2}, kind="TrainingRuntime")
        try:
            await self.create(broken, "probe", dry_run=True)
        except Forbidden:
            return True
        except ApiError:
            return False  # asked, but not answered yet
        return False


async def make_namespace(api: HttpApi) -> str:
    obj: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "hooks-"}}
    made = await api.create(NAMESPACE, obj, field_manager="t")
    return str(made["metadata"]["name"])


async def wait_until_judged(site: Site, *, wanted: bool) -> None:
    async with asyncio.timeout(LIMIT_S):
        while await site.is_judged() is not wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def registered(
    api: HttpApi, namespace: str, client: ServiceClient | UrlClient, bundle: bytes = b""
) -> AsyncIterator[None]:
    """Configurations for one namespace only: other tests share the API server."""
    made = build_webhook_configurations(client, bundle)
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    for (kind, _), obj in zip(CONFIGURATIONS, made, strict=True):
        hooks = [
            {**hook, "namespaceSelector": selector}
            for hook in obj["webhooks"]
            if "clustertrainingruntimes" not in hook["rules"][0]["resources"]
        ]
        await api.create(kind, {**obj, "webhooks": hooks}, field_manager="t")
    try:
        yield
    finally:
        for kind, name in CONFIGURATIONS:
            await api.delete(kind, "", name)


@pytest.fixture
async def site(lane: ApiLane, tmp_path: Path) -> AsyncIterator[Site]:
    warnings: list[str] = []
    folder = lane.authority.write_server(tmp_path / "certs")
    settings = WebhookServerSettings(host="127.0.0.1", port=0, cert_dir=folder)
    async with HttpApi(lane.connection, warnings.append) as api:
        namespace = await make_namespace(api)
        made = Site(api, namespace, warnings)
        async with running(WebhookServer(settings, api, None, SystemClock())) as server:
            async with asyncio.timeout(LIMIT_S):
                while server.find_unready():  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            client = UrlClient(url=f"https://127.0.0.1:{server.port}")
            bundle = base64.b64decode(lane.authority.bundle)
            async with registered(api, namespace, client, bundle):
                await wait_until_judged(made, wanted=True)
                yield made
            await wait_until_judged(made, wanted=False)


def trainjob(**spec: Any) -> Object:
    ref = {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": "rt"}
    return make_trainjob(runtimeRef=ref, **spec)


PATCHES = [
    {
        "manager": "a.io/b",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [{"name": "node"}]}}},
    }
]


async def test_a_real_api_server_asks_and_obeys(site: Site) -> None:
    with pytest.raises(Forbidden, match=r"denied the request: spec\.runtimeRef: Invalid value"):
        await site.create(trainjob())
    await site.create(make_runtime(kind="TrainingRuntime"))
    dry = await site.create(trainjob(runtimePatches=PATCHES), dry_run=True)
    assert dry["spec"]["runtimePatches"][0]["time"]
    made = await site.create(trainjob(runtimePatches=PATCHES, suspend=True))
    assert made["spec"]["runtimePatches"][0]["time"]
    with pytest.raises(Forbidden) as refused:
        await site.create(trainjob(trainer={"numNodes": -1}), "other")
    assert refused.value.message == (
        'admission webhook "validator.trainjob.trainer.kubeflow.org" denied the request: '
        "spec.trainer.numNodes: Invalid value: -1: must be 0 or more"
    )
    with pytest.raises(Invalid):
        await site.create(trainjob(managedBy="nobody.io/x"), "third")
    old = make_runtime(ml_policy={"torch": {"numProcPerNode": 4}}, kind="TrainingRuntime")
    await site.create(old, "older")
    assert any("numProcPerNode" in text for text in site.warnings)

    await site.api.delete(TRAINING_RUNTIME, site.namespace, "older")
    await site.api.patch(
        *(TRAINJOB, site.namespace, "tj"),
        {"spec": {"suspend": False}},
        type=PatchType.MERGE,
        field_manager="t",
    )
    with pytest.raises(Forbidden, match=r"spec\.runtimePatches: Forbidden"):
        await site.api.patch(
            *(TRAINJOB, site.namespace, "tj"),
            {"spec": {"runtimePatches": None}},
            type=PatchType.MERGE,
            field_manager="t",
        )
    status: Object = {"status": {"conditions": [], "jobsStatus": []}}
    with contextlib.suppress(Invalid, Conflict):  # whatever the schema says: no webhook is asked
        await site.api.patch(
            *(TRAINJOB, site.namespace, "tj"),
            status,
            type=PatchType.MERGE,
            subresource="status",
            field_manager="t",
        )
    await site.api.delete(TRAINJOB, site.namespace, "tj")


async def test_the_secret_is_filled_and_the_configurations_trust_it(lane: ApiLane) -> None:
    clock = SystemClock()
    async with HttpApi(lane.connection) as api:
        namespace = await make_namespace(api)
        settings = WebhookServerSettings(host="127.0.0.1", port=0, namespace=namespace)
        client = ServiceClient(name=settings.service_name, namespace=namespace)
        servers = [WebhookServer(settings, api, None, clock) for _ in range(2)]
        async with (
            registered(api, namespace, client),
            running(servers[0]),
            running(servers[1]),
        ):
            async with asyncio.timeout(LIMIT_S):
                while any(server.find_unready() for server in servers):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            secret = await api.get(SECRET, namespace, settings.secret_name)
            material = read_material(secret)
            assert find_fault(material, (settings.dns_name,), clock.now()) == ""
            for kind, name in CONFIGURATIONS:
                for hook in (await api.get(kind, "", name))["webhooks"]:
                    trusted = base64.b64decode(hook["clientConfig"]["caBundle"])
                    assert trusted == material.ca_certificate
