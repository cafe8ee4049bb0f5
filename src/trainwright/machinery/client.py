"""The Kubernetes API over HTTP: a thin client on aiohttp.

It frames watches itself from raw chunks, since objects can be longer than any line limit of a stream
reader, and it raises the typed errors of `base.errors` for every Status that a server answers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import aiohttp
import msgspec

from trainwright.base.errors import ApiError, Unreachable
from trainwright.base.objects import Json, Object, dig, name_of, namespace_of
from trainwright.machinery.api import DeleteOptions, ListPage, PatchType, WatchEvent, WatchType

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from trainwright.api.kinds import Kind
    from trainwright.machinery.connection import Connection

CONNECT_TIMEOUT_S = 10.0
REQUEST_TIMEOUT_S = 60.0
WATCH_SILENCE_S = 600.0
"""A watch with no byte for this long is taken for a half-open connection and ends."""
UNAUTHORIZED = 401
ANYTHING = "application/json, */*"
_WARNING = re.compile(r'299 \S+ "(.*)"')
"""The header in which a Kubernetes server tells what it accepted but finds doubtful."""


class HttpApi:
    """`Api` over HTTP. Use as an async context manager. `warn` gets what the server warns of."""

    def __init__(
        self,
        connection: Connection,
        warn: Callable[[str], None] = lambda _text: None,
        *,
        observers: Sequence[aiohttp.TraceConfig] = (),
        user_agent: str = "trainwright",
    ) -> None:
        """`observers` see every request on its way, and may hold it up or stop it."""
        self.connection = connection
        self._warn = warn
        self._observers = observers
        self._user_agent = user_agent
        self._tls = connection.ssl_context()
        self._prefix = urlsplit(connection.server).path.rstrip("/")
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        address = urlsplit(self.connection.server)
        self._session = aiohttp.ClientSession(
            f"{address.scheme}://{address.netloc}",
            connector=aiohttp.TCPConnector(ssl=self._tls, limit=64),
            timeout=aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            headers={"User-Agent": self._user_agent},
            proxy=self.connection.proxy or None,
            trace_configs=list(self._observers),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """GET one object."""
        return await self.request("GET", kind.path(namespace, name))

    async def list(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> ListPage:
        """GET one page of a collection."""
        answer = await self.request(
            "GET",
            kind.path(namespace),
            query={
                "labelSelector": label_selector,
                "fieldSelector": field_selector,
                "limit": str(limit) if limit else "",
                "continue": continue_token,
            },
        )
        items: list[Object] = answer.get("items") or []
        for item in items:
            item.setdefault("apiVersion", kind.api_version)
            item.setdefault("kind", kind.kind)
        return ListPage(
            items=items,
            resource_version=dig(answer, "metadata", "resourceVersion", default=""),
            continue_token=dig(answer, "metadata", "continue", default=""),
        )

    async def list_all(self, kind: Kind, namespace: str = "", **selectors: str) -> Sequence[Object]:
        """Every object of a collection, page by page."""
        items: Sequence[Object] = ()
        token = ""
        while True:
            page = await self.list(kind, namespace, limit=500, continue_token=token, **selectors)
            items = [*items, *page.items]
            token = page.continue_token
            if not token:
                return items

    async def watch(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_s: float | None = None,
    ) -> AsyncIterator[WatchEvent]:
        """Follow a collection until the server ends it or `timeout_s` is over."""
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "timeoutSeconds": str(max(1, round(timeout_s))) if timeout_s else "",
        }
        lines = self.stream_lines(kind.path(namespace), query=query, silence_s=WATCH_SILENCE_S)
        async for line in lines:
            event = msgspec.json.decode(line)
            if event["type"] == "ERROR":
                raise ApiError.from_status(event["object"])
            yield WatchEvent(WatchType(event["type"]), event["object"])

    async def create(
        self, kind: Kind, obj: Object, *, field_manager: str, dry_run: bool = False
    ) -> Object:
        """POST one object."""
        return await self.request(
            "POST",
            kind.path(namespace_of(obj)),
            query={"fieldManager": field_manager, "dryRun": "All" if dry_run else ""},
            body=obj,
        )

    async def replace(
        self, kind: Kind, obj: Object, *, subresource: str = "", field_manager: str
    ) -> Object:
        """PUT one object."""
        return await self.request(
            "PUT",
            kind.path(namespace_of(obj), name_of(obj), subresource),
            query={"fieldManager": field_manager},
            body=obj,
        )

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        body: Json,
        *,
        type: PatchType,
        subresource: str = "",
        field_manager: str,
        force: bool = False,
        dry_run: bool = False,
    ) -> Object:
        """PATCH one object."""
        return await self.request(
            "PATCH",
            kind.path(namespace, name, subresource),
            query={
                "fieldManager": field_manager,
                "force": "true" if force else "",
                "dryRun": "All" if dry_run else "",
            },
            body=body,
            content_type=type,
        )

    async def delete(
        self, kind: Kind, namespace: str, name: str, options: DeleteOptions | None = None
    ) -> Object:
        """DELETE one object."""
        return await self.request(
            "DELETE", kind.path(namespace, name), body=render_delete_options(options)
        )

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json = None,
        content_type: str = "application/json",
    ) -> Object:
        """One request with a JSON answer; raises the typed error of a failed one."""
        headers = {"Accept": "application/json"}
        data = None
        if body is not None:
            data = msgspec.json.encode(body)
            headers["Content-Type"] = content_type
        try:
            headers |= await self._authorize()
            async with self._open.request(
                method,
                self._prefix + path,
                params=_present(query),
                data=data,
                headers=headers,
                server_hostname=self.connection.tls_server_name or None,
            ) as response:
                self._pass_on_warnings(response)
                return self._read_answer(response.status, await response.read())
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(error) from error

    async def stream_lines(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        silence_s: float | None = None,
        accept: str = ANYTHING,
    ) -> AsyncIterator[bytes]:
        """GET a stream and yield its lines without their ends, of any length."""
        parts: list[bytes] = []
        async for chunk in self.stream(path, query=query, silence_s=silence_s, accept=accept):
            first, *more = chunk.split(b"\n")
            parts.append(first)
            for line in more:
                yield b"".join(parts)
                parts = [line]
        if rest := b"".join(parts):
            yield rest

    async def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        silence_s: float | None = None,
        accept: str = ANYTHING,
    ) -> AsyncIterator[bytes]:
        """GET a stream and yield its bytes as they come; ends when `silence_s` brought nothing."""
        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT_S, sock_read=silence_s)
        try:
            headers = {"Accept": accept, **await self._authorize()}
            async with self._open.get(
                self._prefix + path,
                params=_present(query),
                headers=headers,
                timeout=timeout,
                server_hostname=self.connection.tls_server_name or None,
            ) as response:
                self._pass_on_warnings(response)
                if response.status >= 400:
                    self._read_answer(response.status, await response.read())
                async for chunk in response.content.iter_any():
                    yield chunk
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(error) from error

    async def _authorize(self) -> Mapping[str, str]:
        """The Authorization header, with a client certificate of now in the TLS settings."""
        credentials = self.connection.credentials
        token = await credentials.renew(self._tls) if credentials is not None else ""
        if token:
            return {"Authorization": f"Bearer {token}"}
        return self.connection.authorization()

    def _read_answer(self, code: int, body: bytes) -> Object:
        if code == UNAUTHORIZED and self.connection.credentials is not None:
            self.connection.credentials.reject()
        return _read_answer(code, body)

    def _pass_on_warnings(self, response: aiohttp.ClientResponse) -> None:
        for header in response.headers.getall("Warning", ()):
            if match := _WARNING.fullmatch(header):
                self._warn(re.sub(r"\\(.)", r"\1", match.group(1)))

    @property
    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("HttpApi is used outside of its `async with`")
        return self._session

    def _unreachable(self, error: BaseException) -> Unreachable:
        return Unreachable(
            f"no answer from {self.connection.server}: {error or type(error).__name__}"
        )


def render_delete_options(options: DeleteOptions | None) -> Object | None:
    """The body of a DELETE; None leaves everything to the server."""
    if options is None:
        return None
    body: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if options.propagation is not None:
        body["propagationPolicy"] = options.propagation
    if options.grace_period_s is not None:
        body["gracePeriodSeconds"] = options.grace_period_s
    preconditions = {"uid": options.uid, "resourceVersion": options.resource_version}
    if wanted := {key: value for key, value in preconditions.items() if value is not None}:
        body["preconditions"] = wanted
    return body


def _present(query: Mapping[str, str] | None) -> Mapping[str, str]:
    return {key: value for key, value in (query or {}).items() if value}


def _read_answer(code: int, body: bytes) -> Object:
    try:
        answer: Any = msgspec.json.decode(body) if body else {}
    except msgspec.DecodeError:
        answer = {"message": body[:256].decode(errors="replace")}
    if code >= 400:
        raise ApiError.from_status(answer if isinstance(answer, dict) else {}, code)
    obj: Object = answer
    return obj
