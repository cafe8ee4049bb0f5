"""A command beside a container's process, started at the request of another pod of its job.

Loaded only by the process that a keeper forks for it. Who asks listens on a socket in the run's folder
and hands over, in one message, a line of JSON (`argv`) and its three standard streams. The answer is a
line of JSON (`exitCode`) once the command has ended. Who goes before that ends the command.
"""

# ruff: noqa: D103 - a program: nobody calls these from outside
from __future__ import annotations

import json
import os
import select
import signal
import socket

from trainwright.node.shim.processes import find_descendants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_REQUEST = 1 << 20
NOT_STARTED = 127


def serve_request(folder: str, name: str, run: Callable[[list[str]], None]) -> None:
    """Start the command that is asked for with `run`, which only returns by an error; see it to its end."""
    # Addresses of sockets are short; the name alone is.
    os.chdir(folder)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(name)
    argv, streams = receive_request(connection)
    wake, wake_end = os.pipe()
    for end in (wake, wake_end):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_end)
    command = os.fork()
    if command == 0:
        become_command(argv, streams, run)
    for stream in streams:
        os.close(stream)
    code = follow(command, connection.fileno(), wake)
    if code is None:
        kill(command)
        return
    connection.sendall(json.dumps({"exitCode": code}).encode() + b"\n")


def receive_request(connection: socket.socket) -> tuple[list[str], list[int]]:
    text, streams, _, _ = socket.recv_fds(connection, LONGEST_REQUEST, 3)
    while not text.endswith(b"\n"):
        piece = connection.recv(LONGEST_REQUEST)
        if not piece or len(text) > LONGEST_REQUEST:
            raise ValueError("a request without an end")
        text += piece
    return json.loads(text)["argv"], streams


def become_command(argv: list[str], streams: list[int], run: Callable[[list[str]], None]) -> None:
    try:
        os.setsid()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        run(argv)
    except (OSError, ValueError) as error:
        os.write(2, f"trainwright: {error}\n".encode())
    finally:
        os._exit(NOT_STARTED)


def follow(command: int, connection: int, wake: int) -> int | None:
    """Wait for the command's end: its exit code, 128+n for signal n; None when who asked has gone."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    poll.register(wake, select.POLLIN)
    while True:
        pid, status = os.waitpid(command, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        for end, _event in poll.poll():
            # It sends nothing more: what can be read is the end of file.
            if end == connection:
                return None
            os.read(wake, 4096)


def kill(command: int) -> None:
    for pid in (command, *find_descendants(command)):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
