"""What small ASGI apps of ours share: bodies with a limit, JSON answers. Larger ones have their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.base.errors import RequestTooLarge

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    Scope = MutableMapping[str, Any]

JSON = "application/json"


class ClientGone(Exception):
    """The client hung up before its request was read."""


def read_headers(scope: Scope) -> Mapping[bytes, bytes]:
    """Headers by name in lower case."""
    return {name.lower(): value for name, value in scope["headers"]}


def declared_length(headers: Mapping[bytes, bytes]) -> int:
    """The length of the body that a request announces; 0 when it announces none."""
    declared = headers.get(b"content-length", b"")
    return int(declared) if declared.isdigit() else 0


async def read_body(receive: Receive, limit_bytes: int) -> bytes:
    """The whole body.

    Raises:
        RequestTooLarge: it is longer than the limit.
        ClientGone: the client hung up.
    """
    chunks: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        more = message.get("more_body", False)
        if size > limit_bytes:
            raise RequestTooLarge(f"the body is larger than {limit_bytes} bytes")
    return b"".join(chunks)


async def send_json(
    send: Send, code: int, body: bytes, headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    """Answer with encoded JSON."""
    started = [
        (b"content-type", JSON.encode()),
        (b"content-length", str(len(body)).encode()),
        *headers,
    ]
    await send({"type": "http.response.start", "status": code, "headers": started})
    await send({"type": "http.response.body", "body": body})
