"""`pods/exec` and `pods/attach` over WebSocket, subprotocols v4 and v5 of `channel.k8s.io`.

Each message starts with the number of its channel. The process itself is the business of an
`ExecProvider`, which the node implements.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from trainwright.base.errors import ApiError, BadRequest
from trainwright.base.objects import name_of
from trainwright.server.podlogs import choose_container

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from trainwright.base.objects import Object, ObjectView
    from trainwright.server.http import HttpRequest, Receive, Send

SUBPROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
"""What we speak, the best first. Only v5 can close stdin."""


class Channel(IntEnum):
    """The first byte of a message."""

    STDIN = 0
    STDOUT = 1
    STDERR = 2
    ERROR = 3
    RESIZE = 4
    CLOSE = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecOptions:
    """What to run and which streams to carry."""

    container: str
    command: tuple[str, ...] = ()
    """Empty for attach."""
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class ExecSession(Protocol):
    """One running command, or the streams of a container."""

    def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Output as (1 for stdout or 2 for stderr, bytes); ends when both have ended."""
        ...

    async def write(self, data: bytes) -> None:
        """Bytes for stdin."""
        ...

    async def close_stdin(self) -> None:
        """No more input."""
        ...

    async def resize(self, width: int, height: int) -> None:
        """The terminal's new size in characters."""
        ...

    async def wait(self) -> int:
        """The exit code, once the command has ended; 0 when an attach ends."""
        ...

    async def close(self) -> None:
        """The client is gone or all is done: end the command if it runs and free everything."""
        ...


class ExecProvider(Protocol):
    """Where commands run: implemented by the node. Raises `ApiError` when it cannot."""

    async def exec(self, pod: Object, options: ExecOptions) -> ExecSession:
        """Start a command in the surroundings of a container."""
        ...

    async def attach(self, pod: Object, options: ExecOptions) -> ExecSession:
        """Join the streams of a running container."""
        ...


def parse_exec_request(request: HttpRequest, pod: ObjectView, subresource: str) -> ExecOptions:
    """The options in the query.

    Raises:
        BadRequest: no command, no stream, input for an attach, or a container that is not there.
    """
    command = tuple(request.query.get("command", ()))
    if subresource == "exec" and not command:
        raise BadRequest("you must specify at least one command for the container")
    streams = {name: request.flag(name) for name in ("stdin", "stdout", "stderr")}
    if not any(streams.values()):
        raise BadRequest("you must specify at least 1 of stdin, stdout, stderr")
    if subresource == "attach" and streams["stdin"]:
        raise BadRequest(
            f"the input of pod {name_of(pod)} cannot be joined on the laptop; attach without "
            "stdin to see its output, or exec a command beside it"
        )
    return ExecOptions(
        container=choose_container(pod, request.argument("container")),
        command=command if subresource == "exec" else (),
        tty=request.flag("tty"),
        **streams,
    )


def refuse_plain_session(request: HttpRequest, pod: ObjectView, subresource: str) -> BadRequest:
    """What a client is told that wants a session without a WebSocket, such as SPDY.

    Clients fall back to this after a refusal and show only what they hear last.
    """
    try:
        parse_exec_request(request, pod, subresource)
    except BadRequest as error:
        return error
    return BadRequest(f"Upgrade request required: {subresource} is served over WebSocket")


def choose_subprotocol(offered: Sequence[str]) -> str:
    """The best one that both sides speak.

    Raises:
        BadRequest: none.
    """
    for protocol in SUBPROTOCOLS:
        if protocol in offered:
            return protocol
    raise BadRequest(f"offer one of the WebSocket subprotocols {', '.join(SUBPROTOCOLS)}")


async def refuse_session(error: ApiError, send: Send, *, protocol: str) -> None:
    """End a session that could not begin, on its error channel.

    A refused handshake would make kubectl try SPDY and show the error of that instead.
    """
    await send({"type": "websocket.accept", "subprotocol": protocol})
    await _send_frame(send, Channel.ERROR, msgspec.json.encode(error.to_status()))
    await send({"type": "websocket.close", "code": 1000})


async def serve_session(
    session: ExecSession, options: ExecOptions, receive: Receive, send: Send, *, protocol: str
) -> None:
    """Accept the WebSocket and carry one session over it until it or the client ends."""
    tasks: list[asyncio.Task[None]] = []
    try:
        await send({"type": "websocket.accept", "subprotocol": protocol})
        reader = asyncio.create_task(_carry_input(session, options, receive), name="server.exec.in")
        writer = asyncio.create_task(_carry_output(session, options, send), name="server.exec.out")
        tasks = [reader, writer]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if writer.done():
            writer.result()
            await send({"type": "websocket.close", "code": 1000})
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await session.close()


async def _carry_output(session: ExecSession, options: ExecOptions, send: Send) -> None:
    wanted = {Channel.STDOUT: options.stdout, Channel.STDERR: options.stderr and not options.tty}
    try:
        async for number, data in session.output():
            if wanted.get(Channel(number)) and data:
                await _send_frame(send, Channel(number), data)
        status = build_exit_status(await session.wait())
    except ApiError as error:
        status = error.to_status()
    await _send_frame(send, Channel.ERROR, msgspec.json.encode(status))


async def _send_frame(send: Send, channel: Channel, data: bytes) -> None:
    await send({"type": "websocket.send", "bytes": bytes((channel,)) + data})


async def _carry_input(session: ExecSession, options: ExecOptions, receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return
        frame = read_frame(message)
        if not frame:
            continue
        channel, data = frame[0], frame[1:]
        if channel == Channel.STDIN and options.stdin and data:
            await session.write(data)
        elif channel == Channel.CLOSE and data[:1] == bytes((Channel.STDIN,)):
            await session.close_stdin()
        elif channel == Channel.RESIZE and options.tty:
            await _resize(session, data)


def read_frame(message: Mapping[str, Any]) -> bytes:
    """The bytes of a WebSocket message, which some clients send as text."""
    data: bytes | None = message.get("bytes")
    return data if data is not None else str(message.get("text") or "").encode()


async def _resize(session: ExecSession, data: bytes) -> None:
    try:
        size = msgspec.json.decode(data, type=dict[str, int])
    except msgspec.DecodeError:
        return
    await session.resize(size.get("Width", 80), size.get("Height", 24))


def build_exit_status(code: int) -> dict[str, Any]:
    """The Status on the error channel, which ends a session."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
