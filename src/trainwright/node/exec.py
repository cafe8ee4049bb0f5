"""Commands run in the surroundings of a running container: its variables, folder and namespaces."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainwright.node.mpi import STAND_IN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from trainwright.node.instance import Instance

CHUNK_BYTES = 32768
STDOUT, STDERR = 1, 2
NOT_FOUND_EXIT_CODE = 127
OUTPUT_LIMIT = 10240
"""Of a probe's or hook's output this much is kept."""
CONNECT = """
import socket, sys
try:
    found = socket.create_connection((sys.argv[1], int(sys.argv[2])))
except OSError as error:
    sys.exit(str(error))
socket.send_fds(socket.socket(fileno=0), [b"x"], [found.fileno()])
"""
"""Hands its caller a connection, which stays in the network in which it was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecTarget:
    """A running container as exec needs it."""

    pid: int
    env: Mapping[str, str]
    cwd: str
    has_namespace: bool
    has_network: bool = False


class ExecSession:
    """One running command. Close it: what still runs of it is killed."""

    def __init__(self, process: asyncio.subprocess.Process, terminal: int = -1) -> None:
        self._process = process
        self._terminal = terminal

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Output as (1 stdout or 2 stderr, bytes) until the command ends; a terminal has only 1."""
        if self._terminal >= 0:
            async for data in _read_terminal(self._terminal):
                yield STDOUT, data
            return
        queue: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue(16)
        readers = ((STDOUT, self._process.stdout), (STDERR, self._process.stderr))
        tasks = [asyncio.create_task(_pump(reader, n, queue)) for n, reader in readers if reader]
        left = len(tasks)
        try:
            while left:
                number, data = await queue.get()
                if data:
                    yield number, data
                else:
                    left -= 1
        finally:
            for task in tasks:
                task.cancel()

    async def write(self, data: bytes) -> None:
        """Send input."""
        with contextlib.suppress(OSError):
            if self._terminal >= 0:
                await asyncio.to_thread(os.write, self._terminal, data)
            elif self._process.stdin is not None:
                self._process.stdin.write(data)
                await self._process.stdin.drain()

    async def close_stdin(self) -> None:
        """No more input: end of file for pipes, Ctrl-D for a terminal."""
        if self._terminal >= 0:
            await self.write(b"\x04")
        elif self._process.stdin is not None:
            self._process.stdin.close()

    async def resize(self, width: int, height: int) -> None:
        """Tell the terminal its size; nothing without one."""
        if self._terminal >= 0:
            with contextlib.suppress(OSError):
                fcntl.ioctl(
                    self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0)
                )

    async def wait(self) -> int:
        """The exit code, 128+n for signal n."""
        code = await self._process.wait()
        return code if code >= 0 else 128 - code

    async def close(self) -> None:
        """Kill what still runs and give the terminal back."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()
        if self._terminal >= 0:
            os.close(self._terminal)
            self._terminal = -1


async def _pump(
    reader: asyncio.StreamReader, number: int, queue: asyncio.Queue[tuple[int, bytes]]
) -> None:
    while data := await reader.read(CHUNK_BYTES):
        await queue.put((number, data))
    await queue.put((number, b""))


async def _read_terminal(terminal: int) -> AsyncIterator[bytes]:
    while True:
        try:
            data = await asyncio.to_thread(os.read, terminal, CHUNK_BYTES)
        except OSError:
            # Linux' way to say that the other side is closed.
            return
        if not data:
            return
        yield data


def build_exec_command(target: ExecTarget, command: Sequence[str]) -> tuple[str, ...]:
    """The command that enters the container's namespaces, when it has some, and runs `command`."""
    nsenter = shutil.which("nsenter")
    if not target.has_namespace or nsenter is None:
        return tuple(command)
    user = () if os.getuid() == 0 else ("--user", "--preserve-credentials")
    network = ("--net",) if target.has_network else ()
    return (
        nsenter, "--target", str(target.pid), "--mount", "--uts", *network, *user,
        f"--wdns={target.cwd}", "--", *command,
    )  # fmt: skip


async def start_exec(
    target: ExecTarget, command: Sequence[str], *, stdin: bool = False, tty: bool = False
) -> ExecSession:
    """Start a command in a container's surroundings.

    Raises:
        OSError: the command cannot be started.
    """
    words = build_exec_command(target, command)
    options: dict[str, Any] = {
        "env": dict(target.env),
        "cwd": "/" if words != tuple(command) else target.cwd,
        "start_new_session": True,
    }
    program = shutil.which(words[0], path=target.env.get("PATH", os.defpath)) or words[0]
    if not tty:
        pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            program, *words[1:], stdin=pipe if stdin else null, stdout=pipe, stderr=pipe, **options
        )
        return ExecSession(process)
    own, theirs = pty.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            program, *words[1:], stdin=theirs, stdout=theirs, stderr=theirs, **options
        )
    except OSError:
        os.close(own)
        raise
    finally:
        os.close(theirs)
    return ExecSession(process, own)


async def run_exec(target: ExecTarget, command: Sequence[str]) -> tuple[int, str]:
    """Run a command to its end: (exit code, the first of its output)."""
    try:
        session = await start_exec(target, command)
    except OSError as error:
        return NOT_FOUND_EXIT_CODE, str(error)
    output = b""
    try:
        async for _, data in session.output():
            output = (output + data)[:OUTPUT_LIMIT]
        return await session.wait(), output.decode(errors="replace")
    finally:
        await session.close()


async def connect(target: ExecTarget, host: str, port: int) -> socket.socket:
    """Connect as the container would, from inside its network.

    Raises:
        OSError: nobody answers.
    """
    own, theirs = socket.socketpair()
    own.setblocking(False)
    words = build_exec_command(
        replace(target, cwd="/"), (sys.executable, "-I", "-S", "-c", CONNECT, host, str(port))
    )
    with own:
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *words,
                cwd="/",
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        try:
            _, said = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            raise OSError(said.decode(errors="replace").strip() or "cannot connect")
        _, (descriptor, *_), _, _ = socket.recv_fds(own, 1, 1)
    connection = socket.socket(fileno=descriptor)
    connection.setblocking(False)
    return connection


def build_exec_target(pid: int, spec: Mapping[str, Any]) -> ExecTarget:
    """The exec target of a process that was started by `spec`."""
    namespace = spec.get("namespace") or {}
    return ExecTarget(
        pid=pid,
        env=spec["env"],
        cwd=spec["cwd"],
        has_namespace=bool(namespace),
        has_network=bool(namespace.get("network")),
    )


def read_surroundings(instance: Instance) -> Mapping[str, Any]:
    """What is known of a process that an earlier plane started, read from the process itself."""
    started = instance.read_started() or {}
    pid = started.get("pid", 0)
    try:
        rows = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        cwd = str(Path(f"/proc/{pid}/cwd").readlink())
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return {"env": {}, "cwd": "/"}
    pairs = (row.decode(errors="surrogateescape").partition("=") for row in rows if row)
    namespace = {"network": _is_elsewhere(pid, "net")} if _is_elsewhere(pid, "mnt") else {}
    return {
        "env": {key: value for key, _, value in pairs},
        "cwd": cwd,
        "namespace": namespace,
        "standsIn": [os.fsdecode(word) for word in words[:-1]] == list(STAND_IN),
    }


def _is_elsewhere(pid: int, kind: str) -> bool:
    try:
        return os.readlink(f"/proc/self/ns/{kind}") != os.readlink(f"/proc/{pid}/ns/{kind}")
    except OSError:
        return False
