"""The status server over TLS, held against the answers that were recorded from Trainer 2.3."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec
import pytest
import yaml

from tests.component.server.registries import open_registry
from trainwright.api.kinds import NAMESPACE, POD, TRAINJOB
from trainwright.base.objects import Object, dig, uid_of
from trainwright.core.progress.desk import Pace
from trainwright.core.progress.limit import Allowance
from trainwright.machinery.clock import SystemClock
from trainwright.plane.tokens import IssuedTokens
from trainwright.progress.app import ProgressApp
from trainwright.server.auth import Authenticator, ServiceAccountToken
from trainwright.server.certificates import ensure_certificates
from trainwright.server.inprocess import InProcessApi
from trainwright.server.listen import serve_https

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

RECORDED = yaml.safe_load(
    (Path(__file__).parents[2] / "golden/recorded/status-server.yaml").read_text()
)
PATH = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/a/trainjobs/pt/status"
AUDIENCE = "trainer.kubeflow.org/v1alpha1/namespaces/a/trainjobs/pt/status"
TIME = "2026-01-01T00:00:00Z"
PACE = Pace(job_interval_s=0.2)


@dataclass
class Answer:
    code: int
    body: Any
    headers: Any


class World:
    """A status server with one TrainJob, `a/pt`, and one pod of it."""

    def __init__(
        self, api: InProcessApi, authenticator: Authenticator, http: aiohttp.ClientSession, pod: str
    ) -> None:
        self.api = api
        self.http = http
        self._authenticator = authenticator
        self._pod_uid = pod

    def token(self, **other: Any) -> str:
        said: dict[str, Any] = {
            "namespace": "a",
            "name": "default",
            "uid": "u",
            "pod_name": "pt-node-0-0",
            "pod_uid": self._pod_uid,
            "audiences": (AUDIENCE,),
            "expires_at": int(time.time()) + 600,
        }
        return self._authenticator.make_service_account_token(ServiceAccountToken(**said | other))

    async def post(
        self, body: Any, path: str = PATH, authorization: str | None = None, method: str = "POST"
    ) -> Answer:
        said = f"Bearer {self.token()}" if authorization is None else authorization
        data = body if isinstance(body, bytes) or hasattr(body, "__aiter__") else encode(body)
        headers = {"Authorization": said} if said else {}
        async with self.http.request(method, path, data=data, headers=headers) as response:
            text = await response.read()
            assert response.headers["content-type"] == "application/json"
            assert text.endswith(b"\n")
            return Answer(response.status, msgspec.json.decode(text), response.headers)

    async def trainer_status(self) -> Any:
        return dig(await self.api.get(TRAINJOB, "a", "pt"), "status", "trainerStatus")

    async def wait_status(self, wanted: Any) -> None:
        async with asyncio.timeout(30):
            while await self.trainer_status() != wanted:  # noqa: ASYNC110 - the server's state
                await asyncio.sleep(0.02)


def encode(body: Any) -> bytes:
    return msgspec.json.encode(body)


def report(**status: Any) -> Any:
    return {"trainerStatus": {"lastUpdatedTime": TIME} | status}


@contextlib.asynccontextmanager
async def make_world(folder: Path, allowance: Allowance) -> AsyncIterator[World]:
    clock = SystemClock()
    authenticator = Authenticator("a-token-of-no-installation", b"signing-key", clock)
    certs = ensure_certificates(folder / "certs", clock.now())
    registry = await open_registry(folder / "data")
    api = InProcessApi(registry)
    pod = await create_job_with_pod(api)
    app = ProgressApp(api, IssuedTokens(authenticator), clock, pace=PACE, allowance=allowance)
    server = await serve_https(app, certs=certs)
    writing = asyncio.create_task(app.run())
    context = ssl.create_default_context(cafile=str(certs.ca_file))
    http = aiohttp.ClientSession(server.url, connector=aiohttp.TCPConnector(ssl=context))
    try:
        yield World(api, authenticator, http, uid_of(pod))
    finally:
        await http.close()
        await server.stop()
        await writing
        await registry.close()


async def create_job_with_pod(api: InProcessApi) -> Object:
    trainjob: Object = {
        "apiVersion": TRAINJOB.api_version,
        "kind": "TrainJob",
        "metadata": {"name": "pt", "namespace": "a"},
        "spec": {"runtimeRef": {"name": "torch-distributed"}},
    }
    pod: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "pt-node-0-0",
            "namespace": "a",
            "labels": {"jobset.sigs.k8s.io/jobset-name": "pt"},
        },
        "spec": {"containers": [{"name": "node", "image": "i"}]},
    }
    namespace: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}
    await api.create(NAMESPACE, namespace, field_manager="test")
    await api.create(TRAINJOB, trainjob, field_manager="test")
    return await api.create(POD, pod, field_manager="test")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with make_world(tmp_path, Allowance(per_second=1000, burst=1000)) as made:
        yield made


async def test_what_was_recorded_as_stored_is_stored(world: World) -> None:
    base = RECORDED["stored"][0]["body"]
    for row in RECORDED["stored"]:
        body = encode({**row.get("body", base), **row.get("body_adds", {})})
        body += row.get("body_text_after", "").encode()
        said = row.get("header", "bearer <token>").replace("<token>", world.token())
        answer = await world.post(body, authorization=said)
        echo = row.get("echo", "same")
        wanted = base if echo == "same" else echo
        assert (answer.code, answer.body) == (row["code"], wanted), row["name"]
        await world.wait_status(wanted["trainerStatus"])


async def test_what_was_recorded_as_asking_for_nothing_writes_nothing(world: World) -> None:
    version = dig(await world.api.get(TRAINJOB, "a", "pt"), "metadata", "resourceVersion")
    big = b'{"x":"' + b"y" * (65536 - 8) + b'"}'
    assert len(big) == 65536
    other = world.token(audiences=(AUDIENCE.replace("/pt/", "/none/"),))
    assert (await world.post({})).body == {}
    assert (await world.post({"trainerStatus": None})).body == {}
    assert (await world.post(big)).body == {}
    assert version == dig(await world.api.get(TRAINJOB, "a", "pt"), "metadata", "resourceVersion")
    # Differs: the token must be one of a pod of the job, and a job that is not there has none.
    answer = await world.post({}, PATH.replace("/pt/", "/none/"), f"Bearer {other}")
    assert answer.code == 403


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"trainerStatus": {}}, "lastUpdatedTime"),
        (report(progressPercentage=101), "progressPercentage"),
        (report(metrics=[{"name": "a", "value": "1"}] * 257), "metrics"),
        (report(metrics=[{"name": "", "value": "1"}]), "metrics[0].name"),
    ],
)
async def test_forbidden_values_are_named(world: World, body: Any, field: str) -> None:
    answer = await world.post(body)
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert f"status.trainerStatus.{field}" in answer.body["message"]
    assert set(answer.body) == {"metadata", "status", "message", "reason", "code"}


async def chunks(size: int) -> AsyncIterator[bytes]:
    yield b'{"x":"'
    for _ in range(size // 1024):
        yield b"y" * 1024
    yield b'"}'


async def test_what_cannot_be_read_is_refused_in_words(world: World) -> None:
    unreadable = [b"", b"[]", b"{", encode(report(progressPercentage="5")), chunks(66 * 1024)]
    for body in unreadable:
        answer = await world.post(body)
        assert (answer.code, answer.body["message"]) == (422, "Invalid payload")
    for said in (None, ""):
        answer = await world.post(b"x" * 65537, authorization=said)
        assert (answer.code, answer.body["reason"]) == (413, "RequestEntityTooLarge")
        assert answer.body["message"] == "Payload too large"


async def test_other_routes_are_not_found(world: World) -> None:
    for method, path in (
        ("GET", PATH),
        ("PUT", PATH),
        ("POST", PATH + "/"),
        ("POST", "/healthz"),
        ("POST", PATH.replace("/pt/", "/pt/x/")),
    ):
        answer = await world.post({}, path, method=method)
        assert (answer.code, answer.body["message"]) == (404, "Not found"), (method, path)


async def test_only_pods_of_the_job_may_report(world: World) -> None:
    refused = {
        "no token": "",
        "another scheme": f"Basic {world.token()}",
        "no scheme": world.token(),
        "three words": f"Bearer {world.token()} x",
        "garbage": "Bearer x.y.z",
        "another audience": f"Bearer {world.token(audiences=('x',))}",
        "another namespace": f"Bearer {world.token(namespace='b')}",
        "expired": f"Bearer {world.token(expires_at=1)}",
        "no pod": f"Bearer {world.token(pod_name='', pod_uid='')}",
        "a pod that is not there": f"Bearer {world.token(pod_name='other')}",
        "an earlier pod of the name": f"Bearer {world.token(pod_uid='earlier')}",
    }
    for why, said in refused.items():
        answer = await world.post(report(), authorization=said)
        assert (answer.code, answer.body["reason"]) == (403, "Forbidden"), why
        assert answer.body["message"] == "Forbidden"
    stranger: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "stranger", "namespace": "a"},
        "spec": {"containers": [{"name": "node", "image": "i"}]},
    }
    made = await world.api.create(POD, stranger, field_manager="test")
    token = world.token(pod_name="stranger", pod_uid=uid_of(made))
    assert (await world.post(report(), authorization=f"Bearer {token}")).code == 403


async def test_a_job_that_is_gone_is_not_found(world: World) -> None:
    await world.api.delete(TRAINJOB, "a", "pt")
    answer = await world.post(report())
    assert (answer.code, answer.body["message"]) == (404, "Train job not found")


async def test_a_report_replaces_the_one_before_and_the_last_one_counts(world: World) -> None:
    for percent in (1, 2, 3, 50, 100):
        answer = await world.post(report(progressPercentage=percent))
        assert answer.code == 200
    await world.wait_status({"progressPercentage": 100, "lastUpdatedTime": TIME})
    stored = await world.api.get(TRAINJOB, "a", "pt")
    entry = next(e for e in stored["metadata"]["managedFields"] if e["manager"] == "trainer-status")
    assert (entry["operation"], entry["subresource"]) == ("Apply", "status")


async def test_a_job_that_posts_too_often_is_told_to_wait(tmp_path: Path) -> None:
    async with make_world(tmp_path, Allowance(per_second=0.01, burst=2)) as world:
        codes = [(await world.post(report())).code for _ in range(3)]
        assert codes == [200, 200, 429]
        answer = await world.post(report())
        assert answer.body["reason"] == "TooManyRequests"
        assert int(answer.headers["retry-after"]) >= 1


async def test_what_was_posted_last_is_written_when_the_server_ends(tmp_path: Path) -> None:
    folder = tmp_path / "first"
    async with make_world(folder, Allowance()) as world:
        await world.post(report(progressPercentage=1))
        await world.wait_status({"progressPercentage": 1, "lastUpdatedTime": TIME})
        await world.post(report(progressPercentage=7))
    registry = await open_registry(folder / "data")
    stored = await InProcessApi(registry).get(TRAINJOB, "a", "pt")
    await registry.close()
    assert dig(stored, "status", "trainerStatus", "progressPercentage") == 7
