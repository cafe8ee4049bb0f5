"""Startup, readiness and liveness probes of one running container."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainwright.base.errors import TrainwrightError
from trainwright.node.names import LOOPBACK

RunCommand = Callable[[Sequence[str]], Awaitable[tuple[int, str]]]
"""Run a command in the container's surroundings: (exit code, output)."""
Connect = Callable[[str, int], Awaitable[socket.socket]]
"""Connect as the container would where it has a network of its own; may raise OSError."""
FindPort = Callable[[int | str], int]
"""From a probe's port, a number or the name of a container port, to the port on this machine."""


class ProbeFailure(TrainwrightError):
    """A probe did not succeed; the message is that of the event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSurroundings:
    """How probes reach their container."""

    run_command: RunCommand
    find_port: FindPort
    connect: Connect | None = None
    """None: the container is in the machine's own network."""


async def check_probe(probe: Mapping[str, Any], surroundings: ProbeSurroundings) -> None:
    """Run one probe once.

    Raises:
        ProbeFailure: it failed or took longer than `timeoutSeconds`.
    """
    timeout_s = probe.get("timeoutSeconds") or 1
    try:
        async with asyncio.timeout(timeout_s):
            await _check(probe, surroundings)
    except TimeoutError:
        raise ProbeFailure(f"no answer in {timeout_s} s") from None
    except (OSError, asyncio.IncompleteReadError) as error:
        raise ProbeFailure(str(error) or type(error).__name__) from error


async def _check(probe: Mapping[str, Any], surroundings: ProbeSurroundings) -> None:
    if "exec" in probe:
        code, output = await surroundings.run_command(probe["exec"].get("command") or [])
        if code != 0:
            raise ProbeFailure(output.strip() or f"command exited with code {code}")
    elif "tcpSocket" in probe:
        row = probe["tcpSocket"]
        port = surroundings.find_port(row["port"])
        _, writer = await _open(surroundings, row.get("host") or LOOPBACK, port)
        writer.close()
    elif "httpGet" in probe:
        await _check_http(probe["httpGet"], surroundings)
    else:
        raise ProbeFailure(f"a probe of kind {sorted(probe)} is not known on the laptop")


async def _open(
    surroundings: ProbeSurroundings, host: str, port: int, context: ssl.SSLContext | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if surroundings.connect is None:
        return await asyncio.open_connection(host, port, ssl=context)
    connection = await surroundings.connect(host, port)
    name = host if context else None
    return await asyncio.open_connection(sock=connection, ssl=context, server_hostname=name)


async def _check_http(row: Mapping[str, Any], surroundings: ProbeSurroundings) -> None:
    host, port = row.get("host") or LOOPBACK, surroundings.find_port(row["port"])
    context = None
    if row.get("scheme", "HTTP").upper() == "HTTPS":
        # As the kubelet does: a probe asks whether it answers, not who it is.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    reader, writer = await _open(surroundings, host, port, context)
    try:
        headers = {"Host": f"{host}:{port}", "User-Agent": "kube-probe/1.36", "Accept": "*/*"}
        headers |= {h["name"]: h.get("value", "") for h in row.get("httpHeaders") or []}
        lines = [f"GET {row.get('path') or '/'} HTTP/1.1", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        await writer.drain()
        status = (await reader.readline()).split()
    finally:
        writer.close()
    if len(status) < 2 or not status[1].isdigit():
        raise ProbeFailure("malformed HTTP response")
    if not 200 <= int(status[1]) < 400:
        raise ProbeFailure(f"HTTP probe failed with statuscode: {int(status[1])}")


Judge = Callable[[bool, str], bool]
"""Told each verdict of a probe, when thresholds are reached; True ends the probing."""


async def run_probe(
    probe: Mapping[str, Any], surroundings: ProbeSurroundings, judge: Judge
) -> None:
    """Probe again and again, telling `judge` each time a threshold is reached."""
    await asyncio.sleep(probe.get("initialDelaySeconds") or 0)
    period_s = probe.get("periodSeconds") or 10
    needed = {
        True: probe.get("successThreshold") or 1,
        False: probe.get("failureThreshold") or 3,
    }
    last, count = None, 0
    while True:
        message = ""
        try:
            await check_probe(probe, surroundings)
        except ProbeFailure as failure:
            message = str(failure)
        passed = not message
        count = count + 1 if passed == last else 1
        last = passed
        if count >= needed[passed] and judge(passed, message):
            return
        await asyncio.sleep(period_s)
