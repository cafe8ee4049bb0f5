"""Requests and answers over ASGI: limited bodies, compression, Status errors always as JSON."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import msgspec

from trainwright.api.manifests import render_yaml
from trainwright.base.errors import ApiError, BadRequest, RequestTooLarge, Unauthorized
from trainwright.server.auth import ADMIN, User
from trainwright.server.negotiation import YAML

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Awaitable,
        Callable,
        Mapping,
        MutableMapping,
        Sequence,
    )

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    Scope = MutableMapping[str, Any]

MAX_BODY_BYTES = 3 * 1024 * 1024
GZIP_FROM_BYTES = 128 * 1024
"""Smaller answers go as they are: on loopback, compressing costs more than sending."""
GZIP_LEVEL = 1
GZIP_WINDOW_BITS = 31
MAX_WARNING_CHARACTERS = 4096

_TOO_LARGE = (
    f"the request is larger than {MAX_BODY_BYTES} bytes; keep data and code out of objects: "
    "mount them from a volume, or put them into the image"
)


class ClientGone(Exception):
    """The client hung up before its request was read."""


@dataclass(slots=True)
class HttpRequest:
    """One request; `user` is set once it has been authenticated."""

    method: str
    path: str
    query: Mapping[str, Sequence[str]]
    headers: Mapping[str, str]
    receive: Receive
    user: User = ADMIN
    warnings: list[str] = field(default_factory=list)

    def argument(self, name: str, default: str = "") -> str:
        """The first value of a query parameter."""
        values = self.query.get(name)
        return values[0] if values else default

    def flag(self, name: str) -> bool:
        """Whether a query parameter is a true boolean, as Go and Python write them.

        Raises:
            BadRequest: when it is no boolean.
        """
        return parse_flag(name, self.argument(name)) or False

    def number(self, name: str) -> int | None:
        """A whole number from the query; None when it is not given.

        Raises:
            BadRequest: when it is no whole number.
        """
        text = self.argument(name)
        if not text:
            return None
        try:
            return int(text)
        except ValueError as error:
            raise BadRequest(f'query parameter {name}: "{text}" is no whole number') from error

    async def body(self) -> bytes:
        """The whole body.

        Raises:
            RequestTooLarge: more than 3 MiB.
            ClientGone: the client hung up.
        """
        declared = self.headers.get("content-length", "")
        if declared.isdigit() and int(declared) > MAX_BODY_BYTES:
            raise RequestTooLarge(_TOO_LARGE)
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            chunk: bytes = message.get("body", b"")
            size += len(chunk)
            if size > MAX_BODY_BYTES:
                raise RequestTooLarge(_TOO_LARGE)
            chunks.append(chunk)
            if not message.get("more_body"):
                return b"".join(chunks)


def parse_flag(name: str, text: str) -> bool | None:
    """Read a boolean of the query; None when it is not given."""
    if not text:
        return None
    if text.lower() in {"1", "t", "true"}:
        return True
    if text.lower() in {"0", "f", "false"}:
        return False
    raise BadRequest(f'query parameter {name}: "{text}" is no boolean')


def read_request(scope: Scope, receive: Receive) -> HttpRequest:
    """The request behind an ASGI scope, of HTTP or of a WebSocket."""
    query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return HttpRequest(
        method=scope.get("method", "GET"),
        path=scope["path"],
        query=query,
        headers={
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        },
        receive=receive,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A complete answer."""

    body: bytes
    code: int = 200
    content_type: str = "application/json"
    headers: Sequence[tuple[str, str]] = ()


def render_json(value: Any, code: int = 200) -> Answer:
    """A value as a JSON answer."""
    return Answer(body=msgspec.json.encode(value), code=code)


def render_text(text: str, code: int = 200) -> Answer:
    """Plain text."""
    return Answer(body=text.encode(), code=code, content_type="text/plain; charset=utf-8")


def render_error(error: ApiError) -> Answer:
    """The Status of an error, always as JSON, with the headers that go with it."""
    headers: list[tuple[str, str]] = []
    retry_after_s = error.details.get("retryAfterSeconds")
    if retry_after_s:
        headers.append(("retry-after", str(retry_after_s)))
    if isinstance(error, Unauthorized):
        headers.append(("www-authenticate", "Bearer"))
    body = msgspec.json.encode(error.to_status())
    return Answer(body=body, code=error.status_code, headers=headers)


def render_encoded(data: bytes, encoding: str, code: int, *, pretty: bool) -> Answer:
    """JSON bytes in the encoding that was agreed on."""
    if encoding == YAML:
        text = render_yaml(msgspec.json.decode(data))
        return Answer(body=text.encode(), code=code, content_type=YAML)
    return Answer(body=msgspec.json.format(data, indent=2) + b"\n" if pretty else data, code=code)


def wants_pretty(request: HttpRequest) -> bool:
    """Whether a person reads the answer: `?pretty=true`, or curl and wget."""
    asked = request.argument("pretty")
    if asked:
        return request.flag("pretty")
    return request.headers.get("user-agent", "").lower().startswith(("curl", "wget"))


async def send_answer(request: HttpRequest, send: Send, answer: Answer) -> None:
    """Send an answer, compressed when it is large and the client can read that."""
    body = answer.body
    headers = [("content-type", answer.content_type), *answer.headers]
    if len(body) >= GZIP_FROM_BYTES and accepts_gzip(request.headers.get("accept-encoding", "")):
        body = await asyncio.to_thread(_compress, body)
        headers += [("content-encoding", "gzip"), ("vary", "Accept-Encoding")]
    headers.append(("content-length", str(len(body))))
    headers += build_warning_headers(request.warnings)
    await send(start_message(answer.code, headers))
    await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else body})


def _compress(body: bytes) -> bytes:
    packer = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP_WINDOW_BITS)
    return packer.compress(body) + packer.flush()


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether the client reads gzip."""
    for part in accept_encoding.lower().split(","):
        name, _, parameters = part.partition(";")
        if name.strip() in {"gzip", "*"}:
            return parameters.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False


def start_message(code: int, headers: Sequence[tuple[str, str]]) -> Message:
    """The ASGI message that starts an answer; no answer of an API may be cached."""
    pairs = [*headers, ("cache-control", "no-cache, private")]
    return {
        "type": "http.response.start",
        "status": code,
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs],
    }


def build_warning_headers(texts: Sequence[str]) -> list[tuple[str, str]]:
    """One Warning header per text: quoted, one line, in all about 4 KiB."""
    headers: list[tuple[str, str]] = []
    room = MAX_WARNING_CHARACTERS
    for text in dict.fromkeys(texts):
        plain = "".join(c if c.isprintable() else " " for c in text)
        plain = plain.encode("ascii", "replace").decode()
        quoted = plain.replace("\\", "\\\\").replace('"', '\\"')
        if len(quoted) > room:
            break
        room -= len(quoted)
        headers.append(("warning", f'299 - "{quoted}"'))
    return headers


def split_path(path: str) -> list[str]:
    """The parts between the slashes of a decoded path."""
    return [part for part in path.strip("/").split("/") if part]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An answer that goes on: each chunk is sent as soon as it is there."""

    chunks: AsyncIterator[bytes]
    content_type: str = "application/json"
    close: Callable[[], None] = lambda: None
    """Called once when the stream is over for whatever reason, even if it never began."""


async def send_stream(
    request: HttpRequest, send: Send, stream: Stream, shutdown: asyncio.Event
) -> None:
    """Send a stream until it ends, the client hangs up or the server stops.

    The last but one case sends nothing more; the others end the answer properly.
    """
    headers = [("content-type", stream.content_type), *build_warning_headers(request.warnings)]
    tasks: list[asyncio.Task[None]] = []
    try:
        await send(start_message(200, headers))
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        pump = asyncio.create_task(_pump(send, stream.chunks), name="server.stream.pump")
        gone = asyncio.create_task(_wait_until_gone(request.receive), name="server.stream.gone")
        stopping = asyncio.create_task(_wait_for(shutdown), name="server.stream.stopping")
        tasks = [pump, gone, stopping]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if pump.done():
            pump.result()
        elif gone.done():
            return
    finally:
        await _end_tasks(tasks)
        stream.close()
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _end_tasks(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _pump(send: Send, chunks: AsyncIterator[bytes]) -> None:
    try:
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _wait_for(event: asyncio.Event) -> None:
    await event.wait()
