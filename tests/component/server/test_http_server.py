"""The wire itself: methods, errors, forms, watches and streams, with a plain HTTP client."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from tests.serving import TestServer, running_server
from trainwright.server.auth import ServiceAccountToken
from trainwright.server.http import MAX_BODY_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from trainwright.base.objects import Object
    from trainwright.server.podexec import ExecOptions
    from trainwright.server.podlogs import LogOptions

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
DEADLINE_S = 30


class Logs:
    """Writes one line, then, while it is followed, waits for `more`."""

    def __init__(self) -> None:
        self.more: asyncio.Queue[bytes] = asyncio.Queue()
        self.closed = asyncio.Event()
        self.asked: list[LogOptions] = []

    async def read_log(self, pod: Object, options: LogOptions) -> AsyncIterator[bytes]:
        self.asked.append(options)
        try:
            yield b"hello\nwor"
            while options.follow:
                yield await self.more.get()
        finally:
            self.closed.set()

    def find_gap(self, pod: Object, options: LogOptions) -> str:
        return "" if options.follow else "the first lines are gone"


class Session:
    """Echoes stdin, then ends with the code that was typed."""

    def __init__(self) -> None:
        self.input: asyncio.Queue[bytes] = asyncio.Queue()
        self.code = 0
        self.size = (0, 0)
        self.closed = asyncio.Event()

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        while data := await self.input.get():
            if data.startswith(b"exit "):
                self.code = int(data[5:])
                return
            yield 1, data
            yield 2, b"!"

    async def write(self, data: bytes) -> None:
        await self.input.put(data)

    async def close_stdin(self) -> None:
        await self.input.put(b"")

    async def resize(self, width: int, height: int) -> None:
        self.size = (width, height)

    async def wait(self) -> int:
        return self.code

    async def close(self) -> None:
        self.closed.set()


class Execs:
    """Hands out one session."""

    def __init__(self) -> None:
        self.session = Session()
        self.asked: list[ExecOptions] = []

    async def exec(self, pod: Object, options: ExecOptions) -> Session:
        self.asked.append(options)
        return self.session

    attach = exec


@pytest.fixture
def logs() -> Logs:
    return Logs()


@pytest.fixture
def execs() -> Execs:
    return Execs()


@pytest.fixture
async def server(tmp_path: Path, logs: Logs, execs: Execs) -> AsyncIterator[TestServer]:
    async with running_server(tmp_path, logs=logs, execs=execs) as running:
        yield running


def _config_map(name: str = "a", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def _status(response: aiohttp.ClientResponse, code: int, reason: str) -> dict[str, Any]:
    assert response.content_type == "application/json"
    status: dict[str, Any] = await response.json()
    seen = (response.status, status["kind"], status["code"], status["reason"])
    assert seen == (code, "Status", code, reason), status
    return status


async def test_only_health_and_version_are_open_to_everybody(server: TestServer) -> None:
    for path in ("/healthz", "/livez", "/readyz", "/version"):
        async with server.http.get(path, headers={"Authorization": ""}) as response:
            assert response.status == 200
    for path in ("/", "/api", "/apis", "/openapi/v3", PODS, "/nothing"):
        async with server.http.get(path, headers={"Authorization": "Bearer wrong"}) as response:
            await _status(response, 401, "Unauthorized")


REFUSALS: list[tuple[str, str, dict[str, str], bytes, int, str]] = [
    ("GET", "/nothing", {}, b"", 404, "NotFound"),
    ("GET", "/apis/none.example.org", {}, b"", 404, "NotFound"),
    ("GET", "/openapi/v2", {}, b"", 404, "NotFound"),
    ("GET", "/api/v1/namespaces/default/nodes", {}, b"", 404, "NotFound"),
    ("GET", f"{PODS}/p/proxy", {}, b"", 404, "NotFound"),
    ("GET", f"{CONFIG_MAPS}/none", {}, b"", 404, "NotFound"),
    ("POST", "/api", {}, b"", 405, "MethodNotAllowed"),
    ("POST", "/api/v1/configmaps", {}, b"{}", 405, "MethodNotAllowed"),
    ("PUT", CONFIG_MAPS, {}, b"{}", 405, "MethodNotAllowed"),
    ("GET", CONFIG_MAPS, {"Accept": "application/cbor"}, b"", 406, "NotAcceptable"),
    ("POST", CONFIG_MAPS, {"Content-Type": "text/csv"}, b"a", 415, "UnsupportedMediaType"),
    ("PATCH", f"{CONFIG_MAPS}/a", {"Content-Type": "application/json"}, b"{}", 415, "UnsupportedMediaType"),
    ("POST", CONFIG_MAPS, {}, b"{", 400, "BadRequest"),
    ("POST", CONFIG_MAPS, {}, b"[]", 400, "BadRequest"),
    ("POST", CONFIG_MAPS, {}, b'{"kind":"Secret","metadata":{"name":"a"}}', 400, "BadRequest"),
    ("POST", f"{CONFIG_MAPS}?dryRun=Some", {}, b"{}", 422, "Invalid"),
    ("POST", f"{CONFIG_MAPS}?fieldValidation=Odd", {}, b"{}", 422, "Invalid"),
    ("GET", f"{CONFIG_MAPS}?labelSelector=a in b", {}, b"", 400, "BadRequest"),
    ("GET", f"{CONFIG_MAPS}?fieldSelector=data.a=b", {}, b"", 400, "BadRequest"),
    ("GET", f"{CONFIG_MAPS}?limit=x", {}, b"", 400, "BadRequest"),
    ("GET", f"{CONFIG_MAPS}?sendInitialEvents=true", {}, b"", 422, "Invalid"),
    ("DELETE", f"{CONFIG_MAPS}/a?propagationPolicy=Odd", {}, b"", 422, "Invalid"),
    ("PATCH", f"{CONFIG_MAPS}/a", {"Content-Type": "application/apply-patch+yaml"}, b"{}", 422, "Invalid"),

]  # fmt: skip


async def test_refusals_are_status_objects(server: TestServer) -> None:
    for method, path, extra, body, code, reason in REFUSALS:
        headers = {"Content-Type": "application/json", **extra}
        async with server.http.request(method, path, headers=headers, data=body) as response:
            await _status(response, code, reason)


async def test_too_large_a_body_is_refused_with_advice(server: TestServer) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(MAX_BODY_BYTES // 65536 + 2):
            yield b" " * 65536

    headers = {"Content-Type": "application/json"}
    async with server.http.post(CONFIG_MAPS, headers=headers, data=chunks()) as response:
        status = await _status(response, 413, "RequestEntityTooLarge")
    assert "mount them from a volume" in status["message"]


async def test_create_read_and_delete_in_json_and_yaml(server: TestServer) -> None:
    yaml = b"metadata: {name: a}\ndata: {day: '2024-01-02'}\n"
    headers = {"Content-Type": "application/yaml"}
    async with server.http.post(CONFIG_MAPS, headers=headers, data=yaml) as response:
        assert response.status == 201
        created = await response.json()
    assert created["data"] == {"day": "2024-01-02"}
    async with server.http.get(f"{CONFIG_MAPS}/a", headers={"Accept": "application/yaml"}) as got:
        assert got.content_type == "application/yaml"
        assert "day: '2024-01-02'" in await got.text()
    async with server.http.post(CONFIG_MAPS, json=_config_map()) as response:
        await _status(response, 409, "AlreadyExists")
    async with server.http.delete(f"{CONFIG_MAPS}/a") as response:
        status = await response.json()
    assert (status["status"], status["details"]["uid"]) == ("Success", created["metadata"]["uid"])


async def test_duplicate_fields_are_seen_as_the_client_wants(server: TestServer) -> None:
    body = b'{"metadata": {"name": "%s"}, "data": {"a": "1", "a": "2"}}'
    headers = {"Content-Type": "application/json"}
    strict = f"{CONFIG_MAPS}?fieldValidation=Strict"
    async with server.http.post(strict, headers=headers, data=body % b"a") as response:
        status = await _status(response, 400, "BadRequest")
    assert 'duplicate field "data.a"' in status["message"]
    async with server.http.post(CONFIG_MAPS, headers=headers, data=body % b"b") as response:
        assert response.status == 201
        assert response.headers.getall("Warning") == ['299 - "duplicate field \\"data.a\\""']


async def test_lists_page_and_show_tables_and_metadata(server: TestServer) -> None:
    for name in ("a", "b", "c"):
        async with server.http.post(CONFIG_MAPS, json=_config_map(name)) as response:
            assert response.status == 201
    page = await server.get_json(f"{CONFIG_MAPS}?limit=2")
    assert (page["kind"], [o["metadata"]["name"] for o in page["items"]]) == (
        "ConfigMapList",
        ["a", "b"],
    )
    assert page["metadata"]["remainingItemCount"] == 1
    rest = await server.get_json(f"{CONFIG_MAPS}?limit=2&continue={page['metadata']['continue']}")
    assert [o["metadata"]["name"] for o in rest["items"]] == ["c"]
    table = await server.get_json(CONFIG_MAPS, Accept=TABLE)
    assert table["kind"] == "Table"
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert [row["object"]["kind"] for row in table["rows"]] == ["PartialObjectMetadata"] * 3
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    partial = await server.get_json(CONFIG_MAPS, Accept=accept)
    assert partial["kind"] == "PartialObjectMetadataList"
    assert "data" not in partial["items"][0]
    empty = await server.get_json("/api/v1/namespaces/kube-public/configmaps")
    assert empty["items"] == []


async def test_large_answers_are_compressed(server: TestServer) -> None:
    async with server.http.post(CONFIG_MAPS, json=_config_map("big", x="y" * 200_000)) as response:
        assert response.status == 201
    async with server.http.get(CONFIG_MAPS, headers={"Accept-Encoding": "gzip"}) as response:
        assert response.headers["Content-Encoding"] == "gzip"
        assert len((await response.json())["items"][0]["data"]["x"]) == 200_000
    async with server.http.get(CONFIG_MAPS, headers={"Accept-Encoding": ""}) as response:
        assert "Content-Encoding" not in response.headers


async def test_discovery_tells_the_same_in_both_forms(server: TestServer) -> None:
    groups = await server.get_json("/apis")
    assert all(group["preferredVersion"] for group in groups["groups"])
    legacy = set()
    for group in groups["groups"]:
        for version in group["versions"]:
            resources = await server.get_json(f"/apis/{version['groupVersion']}")
            legacy |= {
                (version["groupVersion"], r["name"], r["kind"]) for r in resources["resources"]
            }
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    async with server.http.get("/apis", headers={"Accept": accept}) as response:
        assert response.headers["Content-Type"].startswith(
            "application/json;g=apidiscovery.k8s.io;v=v2"
        )
        found = await response.json()
    aggregated = set()
    for group in found["items"]:
        for version in group["versions"]:
            where = f"{group['metadata']['name']}/{version['version']}"
            for r in version["resources"]:
                aggregated.add((where, r["resource"], r["responseKind"]["kind"]))
                for sub in r.get("subresources", []):
                    name = f"{r['resource']}/{sub['subresource']}"
                    aggregated.add((where, name, sub["responseKind"]["kind"]))
    assert aggregated == legacy
    assert ("trainer.kubeflow.org/v1alpha1", "trainjobs/status", "TrainJob") in legacy


async def test_openapi_has_what_kubectl_decides_by(server: TestServer) -> None:
    index = await server.get_json("/openapi/v3")
    for key, entry in index["paths"].items():
        document = await server.get_json(entry["serverRelativeURL"])
        refs = json.dumps(document).split('"$ref": "#/components/schemas/')[1:]
        assert {ref.partition('"')[0] for ref in refs} <= set(document["components"]["schemas"]), (
            key
        )
        patches = [item["patch"] for item in document["paths"].values() if "patch" in item]
        assert patches, key
        for patch in patches:
            assert "fieldValidation" in {p["name"] for p in patch["parameters"]}
            strategic = "application/strategic-merge-patch+json" in patch["requestBody"]["content"]
            builtin = "example" not in key and "kubeflow" not in key and "x-k8s" not in key
            assert strategic is (builtin and "volcano" not in key), key


async def _next_event(response: aiohttp.ClientResponse) -> dict[str, Any]:
    line = await asyncio.wait_for(response.content.readline(), DEADLINE_S)
    event: dict[str, Any] = json.loads(line)
    return event


async def test_watch_tells_of_changes_and_ends_at_its_time(server: TestServer) -> None:
    version = (await server.get_json(CONFIG_MAPS))["metadata"]["resourceVersion"]
    path = f"{CONFIG_MAPS}?watch=1&resourceVersion={version}&labelSelector=on=1"
    async with server.http.get(path) as watch:
        assert watch.headers["Transfer-Encoding"] == "chunked"
        obj = _config_map("a", x="1")
        obj["metadata"]["labels"] = {"on": "1"}
        async with server.http.post(CONFIG_MAPS, json=obj) as response:
            assert response.status == 201
        added = await _next_event(watch)
        assert (added["type"], added["object"]["data"]) == ("ADDED", {"x": "1"})
        headers = {"Content-Type": "application/merge-patch+json"}
        patch = json.dumps({"metadata": {"labels": None}})
        async with server.http.patch(f"{CONFIG_MAPS}/a", data=patch, headers=headers) as response:
            assert response.status == 200
        gone = await _next_event(watch)
        assert (gone["type"], gone["object"]["metadata"]["labels"]) == ("DELETED", {"on": "1"})
    async with server.http.get(f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1") as watch:
        lines = (await asyncio.wait_for(watch.read(), DEADLINE_S)).splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["ADDED"]


async def test_watch_list_ends_its_first_part_with_a_bookmark(server: TestServer) -> None:
    path = (
        f"{CONFIG_MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        "&allowWatchBookmarks=true"
    )
    async with server.http.get(path) as watch:
        mark = await _next_event(watch)
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert mark["object"]["kind"] == "ConfigMap"


async def test_table_watch_names_its_columns_once(server: TestServer) -> None:
    async with server.http.get("/api/v1/namespaces?watch=1", headers={"Accept": TABLE}) as watch:
        first, second = await _next_event(watch), await _next_event(watch)
    assert first["object"]["columnDefinitions"]
    assert not second["object"]["columnDefinitions"]
    assert len(second["object"]["rows"]) == 1


async def test_open_watches_end_cleanly_when_the_server_stops(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        watch = await server.http.get("/api/v1/namespaces?watch=1")
        assert (await _next_event(watch))["type"] == "ADDED"
        reading = asyncio.create_task(watch.read())
        stop = server.stop
        await asyncio.wait_for(stop(), DEADLINE_S)
        await asyncio.wait_for(reading, DEADLINE_S)


async def test_service_account_token_stays_in_its_namespace(server: TestServer) -> None:
    account = ServiceAccountToken(namespace="default", name="bot", uid="u", expires_at=2**33)
    token = server.authenticator.make_service_account_token(account)
    headers = {"Authorization": f"Bearer {token}"}
    expected = {
        CONFIG_MAPS: 200,
        "/api/v1/namespaces/kube-system/secrets": 403,
        "/api/v1/secrets": 403,
        "/api/v1/namespaces": 200,
        "/apis": 200,
    }
    for path, code in expected.items():
        async with server.http.get(path, headers=headers) as response:
            assert response.status == code, path
    async with server.http.delete("/api/v1/namespaces/kube-system", headers=headers) as response:
        await _status(response, 403, "Forbidden")


async def _make_pod(server: TestServer, *containers: str, running: bool = True) -> None:
    spec = {"containers": [{"name": name, "image": "i"} for name in containers], "nodeName": "n"}
    pod = {"metadata": {"name": "p"}, "spec": spec}
    async with server.http.post(PODS, json=pod) as response:
        assert response.status == 201, await response.text()
    state = {"running": {}} if running else {"waiting": {"reason": "ImagePullBackOff"}}
    statuses = [
        {
            "name": name,
            "state": state,
            "ready": running,
            "restartCount": 0,
            "image": "i",
            "imageID": "",
        }
        for name in containers
    ]
    patch = {"status": {"phase": "Running", "containerStatuses": statuses}}
    headers = {"Content-Type": "application/merge-patch+json"}
    async with server.http.patch(
        f"{PODS}/p/status", data=json.dumps(patch), headers=headers
    ) as response:
        assert response.status == 200, await response.text()


async def test_log_ends_with_a_newline_and_at_its_limit(server: TestServer, logs: Logs) -> None:
    await _make_pod(server, "c")
    for query, text in {"": "hello\nwor\n", "?limitBytes=3": "hel"}.items():
        async with server.http.get(f"{PODS}/p/log{query}") as response:
            assert (response.status, response.content_type) == (200, "text/plain")
            assert await response.text() == text
    async with server.http.get(f"{PODS}/p/log?tailLines=5&timestamps=true&sinceSeconds=9") as got:
        await got.read()
    asked = logs.asked[-1]
    assert (asked.container, asked.tail_lines, asked.timestamps, asked.follow) == (
        "c",
        5,
        True,
        False,
    )
    assert asked.since is not None


async def test_followed_log_is_freed_when_the_client_leaves(server: TestServer, logs: Logs) -> None:
    await _make_pod(server, "c")
    async with server.http.get(f"{PODS}/p/log?follow=True") as response:
        await logs.more.put(b"ld\n")
        assert await asyncio.wait_for(response.content.readuntil(b"world\n"), DEADLINE_S)
        response.close()
    await asyncio.wait_for(logs.closed.wait(), DEADLINE_S)


LOG_REFUSALS = [
    ("", 400, "choose one of: [c d]"),
    ("?container=x", 400, "container x is not valid"),
    ("?container=c", 400, "is waiting to start: ImagePullBackOff"),
    ("?container=c&previous=true", 400, "previous terminated container"),
    ("?container=c&tailLines=-1", 422, "tailLines"),
    ("?container=c&sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z", 422, "at most one"),
    ("?container=c&stream=Stdout", 422, "stream"),
]


async def test_log_refusals(server: TestServer) -> None:
    await _make_pod(server, "c", "d", running=False)
    for query, code, words in LOG_REFUSALS:
        async with server.http.get(f"{PODS}/p/log{query}") as response:
            status = await response.json()
        assert (response.status, status["code"]) == (code, code)
        assert words in status["message"]


async def test_exec_carries_streams_and_the_exit_code(server: TestServer, execs: Execs) -> None:
    await _make_pod(server, "c")
    path = f"{PODS}/p/exec?command=sh&command=-c&stdin=true&stdout=true&stderr=true"
    async with server.http.ws_connect(path, protocols=["v4.channel.k8s.io"]) as socket:
        assert socket.protocol == "v4.channel.k8s.io"
        await socket.send_bytes(b"\x00hi")
        assert await socket.receive_bytes(timeout=DEADLINE_S) == b"\x01hi"
        assert await socket.receive_bytes(timeout=DEADLINE_S) == b"\x02!"
        await socket.send_bytes(b"\x00exit 3")
        last = await socket.receive_bytes(timeout=DEADLINE_S)
        assert (await socket.receive(timeout=DEADLINE_S)).type is aiohttp.WSMsgType.CLOSE
    status = json.loads(last[1:])
    assert (last[0], status["reason"]) == (3, "NonZeroExitCode")
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
    assert execs.asked[0].command == ("sh", "-c")
    await asyncio.wait_for(execs.session.closed.wait(), DEADLINE_S)


async def test_kubectl_exec_and_logs(server: TestServer, execs: Execs) -> None:
    await _make_pod(server, "c")
    log = await server.kubectl("logs", "p")
    assert (log.out, log.err) == ("hello\nwor\n", "Warning: the first lines are gone\n")
    echoed = await server.kubectl("exec", "-i", "p", "--", "cat", stdin="typed")
    assert (echoed.out, execs.asked[0].command) == ("typed", ("cat",))


async def test_exec_is_refused_before_the_upgrade(server: TestServer) -> None:
    cases = {
        f"{PODS}/none/exec?command=x&stdout=true": 404,
        f"{CONFIG_MAPS}/x/exec": 404,
    }
    for path, code in cases.items():
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await server.http.ws_connect(path, protocols=["v5.channel.k8s.io"])
        assert refused.value.status == code
    await _make_pod(server, "c")
    async with server.http.get(f"{PODS}/p/exec?command=x&stdout=true") as response:
        await _status(response, 400, "BadRequest")


async def test_binding_and_eviction(server: TestServer) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    async with server.http.post(PODS, json=pod) as response:
        assert response.status == 201
    binding = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "n"}}
    async with server.http.post(f"{PODS}/p/binding", json=binding) as response:
        assert response.status == 201
    assert (await server.get_json(f"{PODS}/p"))["spec"]["nodeName"] == "n"
    eviction = {"deleteOptions": {"gracePeriodSeconds": 0}}
    async with server.http.post(f"{PODS}/p/eviction", json=eviction) as response:
        assert (response.status, (await response.json())["status"]) == (201, "Success")
