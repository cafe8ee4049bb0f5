"""Client certificates and names of servers over real TLS."""

from __future__ import annotations

import base64
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml
from aiohttp import web

from trainwright.base.errors import Unreachable
from trainwright.machinery.client import HttpApi
from trainwright.machinery.credentials import load_certificate
from trainwright.machinery.kubeconfig import read_kubeconfig
from trainwright.manager.tls import build_own_certificate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

NOW = datetime.now(UTC)
SERVER_CERTIFICATE, SERVER_KEY = build_own_certificate(("api.internal",), NOW)
CLIENT_CERTIFICATE, CLIENT_KEY = build_own_certificate(("someone",), NOW)
OTHER_CERTIFICATE, OTHER_KEY = build_own_certificate(("another",), NOW)


def encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@dataclass
class Door:
    """A server that wants client certificates, and who came in."""

    url: str
    came: list[str]
    folder: Path

    def api(self, user: dict[str, Any], **cluster: Any) -> HttpApi:
        """A client of a kubeconfig with this user."""
        config = {
            "clusters": [
                {
                    "name": "c",
                    "cluster": {
                        "server": self.url,
                        "certificate-authority-data": encode(SERVER_CERTIFICATE),
                        "tls-server-name": "api.internal",
                        **cluster,
                    },
                }
            ],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        path = self.folder / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return HttpApi(read_kubeconfig(path))


@asynccontextmanager
async def open_door(folder: Path) -> AsyncIterator[Door]:
    came: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        subject = request.transport.get_extra_info("peercert")["subject"]
        came.append(f"{subject[0][0][1]} {request.headers.get('Authorization', '')}".strip())
        return web.json_response({"path": request.path})

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_certificate(tls, SERVER_CERTIFICATE, SERVER_KEY)
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_verify_locations(cadata=CLIENT_CERTIFICATE + OTHER_CERTIFICATE)
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        yield Door(f"https://127.0.0.1:{runner.addresses[0][1]}/clusters/one", came, folder)
    finally:
        await runner.cleanup()


async def test_a_certificate_in_the_kubeconfig_opens_the_door(tmp_path: Path) -> None:
    user = {
        "client-certificate-data": encode(CLIENT_CERTIFICATE),
        "client-key-data": encode(CLIENT_KEY),
        "token": "t",
    }
    async with open_door(tmp_path) as door, door.api(user) as api:
        assert await api.request("GET", "/version") == {"path": "/clusters/one/version"}
    assert door.came == ["someone Bearer t"]


async def test_certificate_files_are_read_again_when_they_change(tmp_path: Path) -> None:
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_text(CLIENT_CERTIFICATE)
    key.write_text(CLIENT_KEY)
    user = {"client-certificate": "tls.crt", "client-key": "tls.key"}
    async with open_door(tmp_path) as door:
        api = door.api(user)
        async with api:
            await api.request("GET", "/version")
        certificate.write_text(OTHER_CERTIFICATE)
        key.write_text(OTHER_KEY)
        async with api:
            await api.request("GET", "/version")
    assert door.came == ["someone", "another"]


async def test_a_program_may_print_a_certificate(tmp_path: Path) -> None:
    credential = {
        "kind": "ExecCredential",
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "status": {"clientCertificateData": CLIENT_CERTIFICATE, "clientKeyData": CLIENT_KEY},
    }
    printed = tmp_path / "credential.json"
    printed.write_bytes(msgspec.json.encode(credential))
    user = {
        "exec": {"apiVersion": credential["apiVersion"], "command": "cat", "args": [str(printed)]}
    }
    async with open_door(tmp_path) as door, door.api(user) as api:
        await api.request("GET", "/version")
    assert door.came == ["someone"]


@pytest.mark.parametrize(
    "cluster",
    [
        {"tls-server-name": "other.internal"},
        {"certificate-authority-data": encode(CLIENT_CERTIFICATE)},
    ],
)
async def test_a_server_of_another_name_or_authority_is_not_believed(
    tmp_path: Path, cluster: dict[str, str]
) -> None:
    user = {
        "client-certificate-data": encode(CLIENT_CERTIFICATE),
        "client-key-data": encode(CLIENT_KEY),
    }
    async with open_door(tmp_path) as door:
        async with door.api(user, **cluster) as api:
            with pytest.raises(Unreachable, match="certificate"):
                await api.request("GET", "/version")
        insecure = {"insecure-skip-tls-verify": True, "certificate-authority-data": None}
        async with door.api(user, **cluster | insecure) as api:
            await api.request("GET", "/version")
    assert door.came == ["someone"]


async def test_a_proxy_in_between_is_gone_through(tmp_path: Path) -> None:
    asked: list[str] = []

    async def pass_on(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.url}")
        return web.json_response({})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", pass_on)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        door = Door("http://api.invalid", [], tmp_path)
        proxy = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with door.api({"token": "t"}, **{"proxy-url": proxy}) as api:
            await api.request("GET", "/version")
    finally:
        await runner.cleanup()
    assert asked == ["GET http://api.invalid/version"]
