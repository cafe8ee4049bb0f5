"""Reviews that nobody should send, and objects of any shape: always an answer, never a crash."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.component.webhooks.clusters import NOW, TestClock, open_cluster, serving
from tests.unit.core.trainjob.factories import make_job, make_runtime, make_trainjob
from trainwright.api import kinds
from trainwright.base.errors import NotFound, Unreachable
from trainwright.merge.json_patch import apply_json_patch
from trainwright.webhooks.app import MAX_BODY_BYTES, WebhookApp
from trainwright.webhooks.configurations import WEBHOOKS
from trainwright.webhooks.judgement import Judge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.component.webhooks.clusters import Caller
    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object
    from trainwright.machinery.api import Api

MUTATE, VALIDATE = WEBHOOKS[0].path, WEBHOOKS[3].path
REVIEW = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}


@pytest.fixture
async def caller(tmp_path: Path) -> AsyncIterator[Caller]:
    registry, api = await open_cluster(tmp_path / "data")
    async with serving(tmp_path, api) as made:
        yield made
    await registry.close()


def review(**request: Any) -> Object:
    return {**REVIEW, "request": {"uid": "u", "operation": "CREATE", **request}}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[]", "no object"),
        (b"{}", "AdmissionReview"),
        (json.dumps({**REVIEW, "apiVersion": "admission.k8s.io/v1beta1"}).encode(), "v1beta1"),
        (json.dumps(REVIEW).encode(), "request: an object"),
        (json.dumps({**REVIEW, "request": {"operation": "CREATE"}}).encode(), "request.uid"),
        (json.dumps(review(operation="PATCH")).encode(), "request.operation"),
        (json.dumps(review(operation=["CREATE"])).encode(), "request.operation"),
    ],
)
async def test_unreadable_reviews_are_a_400_in_words(
    caller: Caller, body: bytes, text: str
) -> None:
    headers = {"Content-Type": "application/json"}
    async with caller.http.post(VALIDATE, data=body, headers=headers) as answer:
        assert answer.status == 400
        status = await answer.json()
    assert status["reason"] == "BadRequest"
    assert text in status["message"]


async def test_other_requests_are_refused_by_their_codes(caller: Caller) -> None:
    async with caller.http.get(VALIDATE) as answer:
        assert answer.status == 405
    async with caller.http.post("/elsewhere", json={}) as answer:
        assert answer.status == 404
    async with caller.http.post(VALIDATE, data=b"{}") as answer:
        assert answer.status == 415


@pytest.mark.parametrize("declared", [True, False])
async def test_reviews_that_are_too_large_are_not_read(declared: bool) -> None:
    large = b" " * (MAX_BODY_BYTES + 1)
    code, status = await ask_app(make_app(), VALIDATE, large, declared=declared)
    assert (code, status["reason"]) == (413, "RequestEntityTooLarge")


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ({}, "request.object: a TrainJob was wanted"),
        ({"object": make_runtime()}, "ClusterTrainingRuntime"),
        ({"object": {**make_trainjob(), "metadata": 3}}, "metadata"),
        ({"object": make_trainjob(), "operation": "UPDATE"}, "request.oldObject"),
    ],
)
async def test_readable_reviews_of_the_wrong_object_are_denied(
    caller: Caller, request_: Object, text: str
) -> None:
    answer = await caller.ask(VALIDATE, request_)
    assert not answer["allowed"]
    assert answer["status"]["code"] == 400
    assert text in answer["status"]["message"]


@pytest.mark.parametrize("path", [webhook.path for webhook in WEBHOOKS])
async def test_deletions_and_subresources_always_pass(caller: Caller, path: str) -> None:
    for request in (
        {"operation": "DELETE", "object": None, "oldObject": make_trainjob()},
        {"operation": "CONNECT"},
        {"operation": "UPDATE", "subResource": "status", "object": {}, "oldObject": {}},
    ):
        assert await caller.ask(path, request) == {"uid": "u-1", "allowed": True}


async def test_large_objects_do_not_hold_up_others(caller: Caller) -> None:
    env = [{"name": f"V{i}", "value": "x"} for i in range(20_000)]
    large = make_trainjob(trainer={"env": env})
    work = [caller.ask(path, {"object": large}) for path in (MUTATE, VALIDATE) for _ in range(2)]
    small = caller.ask(MUTATE, {"object": make_trainjob()})
    answers = await asyncio.gather(*work, small)
    assert [answer["allowed"] for answer in answers] == [True, True, False, False, True]


async def test_a_patch_of_very_many_jobs_is_judged_in_time() -> None:
    jobs = [{"name": f"n{i}"} for i in range(40_000)]
    template = {"spec": {"replicatedJobs": jobs}}
    patch = {"manager": "a.io/b", "trainingRuntimeSpec": {"template": template}}
    body = review(object=make_trainjob(runtimePatches=[patch]))
    code, answer = await ask_app(make_app(), VALIDATE, body)
    assert (code, answer["response"]["allowed"]) == (200, False)
    assert "spec.runtimePatches" in answer["response"]["status"]["message"]


class SilentApi:
    """An API server that knows one runtime, or does not answer at all."""

    def __init__(self, *, answers: bool) -> None:
        self._answers = answers

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        del namespace
        if not self._answers:
            raise Unreachable("nobody there")
        if kind == kinds.CLUSTER_TRAINING_RUNTIME and name == "rt":
            return make_runtime()
        raise NotFound(name)


async def ask_app(
    app: WebhookApp, path: str, body: Any, *, declared: bool = False
) -> tuple[int, Any]:
    """Ask without a network, for thousands of questions."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": data}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    headers += [(b"content-length", str(len(data)).encode())] * declared
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers}
    await app(scope, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


def make_app(*, answers: bool = True) -> WebhookApp:
    api: Api = SilentApi(answers=answers)  # type: ignore[assignment]
    return WebhookApp(Judge(api, None, TestClock(NOW)))


async def test_an_api_server_that_is_away_denies_in_words() -> None:
    code, answer = await ask_app(make_app(answers=False), VALIDATE, review(object=make_trainjob()))
    assert code == 200
    assert not answer["response"]["allowed"]
    assert answer["response"]["status"]["code"] == 500
    assert "nobody there; try again" in answer["response"]["status"]["message"]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**40) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
KIND_OF_PATH = {webhook.path: webhook.kind for webhook in WEBHOOKS}


def places_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something can be put that does not belong there."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, child in value.items():
            found += places_of(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            found += places_of(child, (*path, index))
    return found


def put(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(value[path[0]], path[1:], other)
    return copy


PATCH = {
    "manager": "a.io/b",
    "time": "2026-01-01T00:00:00Z",
    "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [{"name": "node"}]}}},
}
FULL = {
    kinds.TRAINJOB: make_trainjob(
        trainer={
            "numNodes": 2,
            "numProcPerNode": 2,
            "image": "i",
            "command": ["c"],
            "args": ["a"],
            "env": [{"name": "A", "value": "b"}],
            "resourcesPerNode": {"requests": {"cpu": "1"}},
        },
        initializer={"dataset": {"storageUri": "hf://a", "env": [{"name": "A"}]}},
        runtimePatches=[PATCH],
        podTemplateOverrides=[{"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {}}}],
        labels={"a": "b"},
    ),
    kinds.CLUSTER_TRAINING_RUNTIME: make_runtime(make_job(env=[{"name": "A"}])),
    kinds.TRAINING_RUNTIME: make_runtime(kind="TrainingRuntime"),
}


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, Object]:
    """A review whose objects had up to three of their parts replaced by anything."""
    path = draw(st.sampled_from(sorted(KIND_OF_PATH)))
    base = FULL[KIND_OF_PATH[path]]
    objects = []
    for _ in range(2):
        obj: Any = base
        for _ in range(draw(st.integers(0, 3))):
            place = draw(st.sampled_from(places_of(obj)))
            obj = put(obj, place, draw(ANYTHING))
        objects.append(obj)
    operation = draw(st.sampled_from(["CREATE", "UPDATE"]))
    return path, review(operation=operation, object=objects[0], oldObject=objects[1])


@settings(
    deadline=None,
    max_examples=400,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(requests())
def test_no_object_is_left_without_an_answer(asked: tuple[str, Object]) -> None:
    path, body = asked
    code, answer = asyncio.run(ask_app(make_app(), path, body))
    assert code == 200, answer
    response = answer["response"]
    if not response["allowed"]:
        assert response["status"]["message"]
        assert response["status"]["code"] in (400, 403, 422), response
    elif "patch" in response:
        patch = json.loads(base64.b64decode(response["patch"]))
        apply_json_patch(body["request"]["object"], patch)
