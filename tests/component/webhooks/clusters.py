"""Webhooks beside an embedded server, asked over TLS the way a cluster's API server asks them."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import aiohttp

from trainwright.api.schemas.registry import schema_of
from trainwright.core.admission import build_admission
from trainwright.machinery.clock import SystemClock
from trainwright.merge.json_patch import apply_json_patch
from trainwright.schema.defaulting import apply_defaults
from trainwright.schema.pruning import prune
from trainwright.schema.rules import find_rule_errors
from trainwright.schema.validation import find_schema_errors
from trainwright.server.certificates import ensure_certificates
from trainwright.server.inprocess import InProcessApi
from trainwright.server.registry import Registry
from trainwright.webhooks.configurations import CONFIGURATIONS, WEBHOOKS
from trainwright.webhooks.server import WebhookServer, WebhookServerSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@dataclass
class TestClock(SystemClock):
    """Stands still until it is set."""

    __test__ = False

    moment: datetime = NOW

    def now(self) -> datetime:
        return self.moment


async def open_cluster(folder: Path) -> tuple[Registry, InProcessApi]:
    """A server with every rule, on a clock that stands still, that stores configurations too."""
    registry = await Registry.open(folder, TestClock(), admission=build_admission())
    return registry, InProcessApi(registry)


async def eventually(condition: Callable[[], Any], *, within_s: float = 60) -> None:
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def running(server: WebhookServer) -> AsyncIterator[WebhookServer]:
    stopping = asyncio.Event()
    task = asyncio.create_task(server.run(stopping))
    try:
        yield server
    finally:
        stopping.set()
        await task


def make_cert_dir(folder: Path) -> tuple[Path, Path]:
    """A folder as `--cert-dir` wants it, and the authority's file."""
    made = ensure_certificates(folder / "authority", datetime.now(UTC))
    certs = folder / "certs"
    certs.mkdir()
    (certs / "tls.crt").write_bytes(made.cert_file.read_bytes())
    (certs / "tls.key").write_bytes(made.key_file.read_bytes())
    return certs, made.ca_file


@dataclass
class Outcome:
    """What became of a write."""

    code: int = 201
    message: str = ""
    stored: Object | None = None
    warnings: Sequence[str] = field(default_factory=list)


class Caller:
    """The parts of a real API server around its webhooks."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self.http = http

    async def ask(self, path: str, request: Object) -> Object:
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        body = {**review, "request": {"uid": "u-1", "operation": "CREATE", **request}}
        async with self.http.post(path, json=body) as answer:
            assert answer.status == 200, await answer.text()
            found = await answer.json()
        assert {key: found[key] for key in review} == review
        response: Object = found["response"]
        assert response["uid"] == "u-1"
        return response

    async def write(self, kind: Kind, new: Object, old: Object | None = None) -> Outcome:
        """Prune, default, mutate, validate, as a real server does; nothing is stored."""
        schema = schema_of(kind)
        assert schema is not None
        new = apply_defaults(schema, prune(schema, new)[0])
        request = {"operation": "UPDATE" if old else "CREATE", "oldObject": old}
        outcome = Outcome()
        warnings: list[str] = []
        for webhook in sorted(WEBHOOKS, key=lambda one: not one.mutates):
            if webhook.kind != kind:
                continue
            if not webhook.mutates and (
                find_schema_errors(schema, new) or find_rule_errors(schema, new, old)
            ):
                return Outcome(code=422)
            response = await self.ask(webhook.path, {**request, "object": new})
            warnings += response.get("warnings", ())
            if not response["allowed"]:
                status = response["status"]
                message = f'admission webhook "{webhook.name}" denied the request: '
                return Outcome(status["code"], message + status["message"], warnings=warnings)
            if "patch" in response:
                assert response["patchType"] == "JSONPatch"
                patched = apply_json_patch(new, _decode(response["patch"]))
                new = apply_defaults(schema, prune(schema, patched)[0])
        outcome.stored, outcome.warnings = new, list(dict.fromkeys(warnings))
        return outcome


def _decode(patch: str) -> Any:
    return json.loads(base64.b64decode(patch))


@contextlib.asynccontextmanager
async def calling(port: int, ca: Path | str) -> AsyncIterator[Caller]:
    """A client that trusts one authority."""
    tls = ssl.create_default_context(
        cafile=None if isinstance(ca, str) else str(ca),
        cadata=ca if isinstance(ca, str) else None,
    )
    async with aiohttp.ClientSession(
        f"https://127.0.0.1:{port}",
        connector=aiohttp.TCPConnector(ssl=tls),
        timeout=aiohttp.ClientTimeout(total=60),
    ) as http:
        yield Caller(http)


@contextlib.asynccontextmanager
async def serving(folder: Path, api: InProcessApi) -> AsyncIterator[Caller]:
    """Webhooks with a certificate of files, and who calls them."""
    certs, ca = await asyncio.to_thread(make_cert_dir, folder)
    settings = WebhookServerSettings(host="127.0.0.1", port=0, cert_dir=certs)
    async with running(WebhookServer(settings, api, None, TestClock())) as server:
        await eventually(lambda: not server.find_unready())
        async with calling(server.port, ca) as caller:
            yield caller


def make_configuration_crds() -> list[Object]:
    """Lets an embedded server keep webhook configurations."""
    return [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": kind.resource,
                "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
            },
            "spec": {
                "group": kind.group,
                "scope": "Cluster",
                "names": {"plural": kind.plural, "singular": kind.singular, "kind": kind.kind},
                "versions": [
                    {
                        "name": kind.version,
                        "served": True,
                        "storage": True,
                        "schema": {
                            "openAPIV3Schema": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            }
                        },
                    }
                ],
            },
        }
        for kind, _ in CONFIGURATIONS
    ]
