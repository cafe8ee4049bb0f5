"""The serving certificate: made, trusted, loaded, renewed; by several replicas at once."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509

from tests.component.webhooks.clusters import (
    NOW,
    TestClock,
    calling,
    eventually,
    make_cert_dir,
    make_configuration_crds,
    open_cluster,
    running,
)
from trainwright.api import kinds
from trainwright.base.errors import LocalRunError
from trainwright.base.objects import Object, resource_version_of
from trainwright.machinery.api import PatchType
from trainwright.webhooks.certificates import find_fault, read_material
from trainwright.webhooks.configurations import (
    CONFIGURATIONS,
    WEBHOOKS,
    ServiceClient,
    build_webhook_configurations,
)
from trainwright.webhooks.server import WebhookServer, WebhookServerSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from trainwright.server.inprocess import InProcessApi

SETTINGS = WebhookServerSettings(host="127.0.0.1", port=0, namespace="default")
SECRET = (kinds.SECRET, "default", SETTINGS.secret_name)
NAMES = (SETTINGS.dns_name,)


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[InProcessApi]:
    """A server that has our configurations, without a bundle."""
    registry, api = await open_cluster(tmp_path / "data")
    for crd in make_configuration_crds():
        await api.create(kinds.CUSTOM_RESOURCE_DEFINITION, crd, field_manager="t")
    client = ServiceClient(name=SETTINGS.service_name, namespace="default")
    for (kind, _), obj in zip(CONFIGURATIONS, build_webhook_configurations(client), strict=True):
        await api.create(kind, obj, field_manager="t")
    yield api
    await registry.close()


def make_server(api: InProcessApi, clock: TestClock) -> WebhookServer:
    return WebhookServer(SETTINGS, api, None, clock)


async def bundles(api: InProcessApi) -> set[bytes]:
    found = [await api.get(kind, "", name) for kind, name in CONFIGURATIONS]
    return {
        base64.b64decode(webhook["clientConfig"].get("caBundle", ""))
        for configuration in found
        for webhook in configuration["webhooks"]
    }


def presented_by(port: int) -> x509.Certificate:
    """What a server shows to a new connection."""
    return x509.load_pem_x509_certificate(
        ssl.get_server_certificate(("127.0.0.1", port), timeout=30).encode()
    )


async def wait_for_serial(server: WebhookServer, certificate: bytes) -> None:
    wanted = x509.load_pem_x509_certificate(certificate).serial_number
    async with asyncio.timeout(60):
        while True:
            seen = await asyncio.to_thread(presented_by, server.port)
            if seen.serial_number == wanted:
                return
            await asyncio.sleep(0.05)


async def test_a_missing_certificate_is_made_trusted_and_served(api: InProcessApi) -> None:
    before = [await api.get(kind, "", name) for kind, name in CONFIGURATIONS]
    server = make_server(api, TestClock())
    assert "certificates are not ready" in server.find_unready()
    async with running(server):
        await eventually(lambda: not server.find_unready())
        material = read_material(await api.get(*SECRET))
        assert find_fault(material, NAMES, NOW) == ""
        assert await bundles(api) == {material.ca_certificate}
        await wait_for_serial(server, material.certificate)
    for old, (kind, name) in zip(before, CONFIGURATIONS, strict=True):
        new = await api.get(kind, "", name)
        for webhook in new["webhooks"]:
            del webhook["clientConfig"]["caBundle"]
        assert new["webhooks"] == old["webhooks"]
        assert new["metadata"].get("labels") == old["metadata"].get("labels")


async def test_an_empty_secret_is_filled_and_foreign_keys_stay(api: InProcessApi) -> None:
    secret: Object = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SETTINGS.secret_name, "namespace": "default", "labels": {"a": "b"}},
        "data": {"other": "eA=="},
    }
    await api.create(kinds.SECRET, secret, field_manager="t")
    server = make_server(api, TestClock())
    async with running(server):
        await eventually(lambda: not server.find_unready())
    stored = await api.get(*SECRET)
    assert stored["data"]["other"] == "eA=="
    assert stored["metadata"]["labels"] == {"a": "b"}
    assert find_fault(read_material(stored), NAMES, NOW) == ""


async def test_replicas_agree_and_heal(api: InProcessApi) -> None:
    clock = TestClock()
    first, second = make_server(api, clock), make_server(api, clock)
    async with running(first), running(second):
        await eventually(lambda: not first.find_unready() and not second.find_unready())
        material = read_material(await api.get(*SECRET))
        for server in (first, second):
            await wait_for_serial(server, material.certificate)

        await api.delete(*SECRET)
        await eventually_async(lambda: has_other_certificate(api, material.certificate))
        made = read_material(await api.get(*SECRET))
        for server in (first, second):
            await wait_for_serial(server, made.certificate)
        assert await bundles(api) == {made.ca_certificate}

        # Somebody rolls the configuration back to what a chart has.
        kind, name = CONFIGURATIONS[1]
        clean = build_webhook_configurations(ServiceClient(name="x", namespace="default"))[1]
        await api.patch(
            kind, "", name, {"webhooks": clean["webhooks"]}, type=PatchType.MERGE, field_manager="t"
        )
        await eventually_async(lambda: has_bundle(api, made.ca_certificate))
        assert not first.find_unready()


async def has_other_certificate(api: InProcessApi, certificate: bytes) -> bool:
    page = await api.list(kinds.SECRET, "default")
    found = [s for s in page.items if s["metadata"]["name"] == SETTINGS.secret_name]
    return bool(found) and read_material(found[0]).certificate not in (b"", certificate)


async def has_bundle(api: InProcessApi, bundle: bytes) -> bool:
    return await bundles(api) == {bundle}


async def eventually_async(condition: Any) -> None:
    async with asyncio.timeout(90):
        while not await condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.05)


async def test_near_expiry_a_new_certificate_is_served_without_a_restart(
    api: InProcessApi,
) -> None:
    clock = TestClock()
    server = make_server(api, clock)
    async with running(server):
        await eventually(lambda: not server.find_unready())
        before = read_material(await api.get(*SECRET))
        version = resource_version_of(await api.get(*SECRET))
        clock.moment = NOW + timedelta(days=280)
        await touch(api)
        await eventually_async(lambda: has_other_certificate(api, before.certificate))
        after = read_material(await api.get(*SECRET))
        await wait_for_serial(server, after.certificate)
        assert after.ca_certificate == before.ca_certificate
        assert resource_version_of(await api.get(*SECRET)) != version

        clock.moment = NOW + timedelta(days=3600)
        await touch(api)
        await eventually_async(lambda: has_other_certificate(api, after.certificate))
        last = read_material(await api.get(*SECRET))
        await wait_for_serial(server, last.certificate)
        assert last.ca_certificate.endswith(before.ca_certificate)  # replicas that lag are trusted
        assert len(x509.load_pem_x509_certificates(last.ca_certificate)) == 2
        assert await bundles(api) == {last.ca_certificate}


async def touch(api: InProcessApi) -> None:
    """Any change makes a replica look; without one it looks after half a minute."""
    body = {"metadata": {"labels": {"touched": str(id(object()))}}}
    await api.patch(*SECRET, body, type=PatchType.MERGE, field_manager="t")


async def test_files_are_loaded_again_when_they_change(tmp_path: Path, api: InProcessApi) -> None:
    folder = tmp_path / "later"
    settings = WebhookServerSettings(host="127.0.0.1", port=0, cert_dir=folder)
    server = WebhookServer(settings, api, None, TestClock())
    async with running(server):
        await eventually(lambda: "tls.crt" in server.find_unready())
        with pytest.raises(OSError):  # noqa: PT011 - nobody listens before there is a certificate
            socket.create_connection(("127.0.0.1", server.port), timeout=5).close()
        certs, ca = make_cert_dir(make_folder(tmp_path / "one"))
        certs.rename(folder)
        await eventually(lambda: not server.find_unready())
        async with calling(server.port, ca) as caller:
            assert (await caller.ask(WEBHOOKS[0].path, {"operation": "DELETE"}))["allowed"]
        certs, ca = make_cert_dir(make_folder(tmp_path / "two"))
        (folder / "tls.key").write_text("not a key")  # half of a change
        (folder / "tls.crt").write_bytes((certs / "tls.crt").read_bytes())
        (folder / "tls.key").write_bytes((certs / "tls.key").read_bytes())
        await wait_for_serial(server, (certs / "tls.crt").read_bytes())
        async with calling(server.port, ca) as caller:
            assert (await caller.ask(WEBHOOKS[0].path, {"operation": "DELETE"}))["allowed"]


def make_folder(path: Path) -> Path:
    path.mkdir()
    return path


async def test_a_taken_port_is_said_at_once(api: InProcessApi) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = WebhookServerSettings(host="127.0.0.1", port=taken.getsockname()[1])
        with pytest.raises(LocalRunError, match="cannot be listened on"):
            await WebhookServer(settings, api, None, TestClock()).run(asyncio.Event())
