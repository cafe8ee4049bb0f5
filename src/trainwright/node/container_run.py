"""One run of one container: from its start to its exit record, with its probes, hooks and its end."""

from __future__ import annotations

import asyncio
import contextlib
import math
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from trainwright.api.conditions import CONTAINER_EXITED
from trainwright.base.errors import LocalRunError
from trainwright.base.objects import Object, dig, name_of
from trainwright.base.times import render_time
from trainwright.core.journal import (
    ContainerExited,
    ContainerStarted,
    ProbeFailed,
    attempt_of,
    subject_of,
)
from trainwright.node import status
from trainwright.node.exec import ExecTarget, build_exec_target, connect, run_exec
from trainwright.node.logs import read_tail
from trainwright.node.preparation import TERMINATION_LOG, explain_start_error
from trainwright.node.probes import ProbeFailure, ProbeSurroundings, check_probe, run_probe
from trainwright.node.status import ContainerState, Running, Terminated

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine, Mapping
    from pathlib import Path

    from trainwright.node.host import Host
    from trainwright.node.instance import Instance, Record

MINIMUM_GRACE_S = 2.0
"""A graceful end always leaves this long, as the kubelet does."""
TERMINATION_MESSAGE_LIMIT = 4096
FALLBACK_LINES, FALLBACK_BYTES = 80, 2048


class OwnPod(Protocol):
    """The pod of a run, as the run knows it."""

    @property
    def host(self) -> Host:
        """The machine."""
        ...

    @property
    def pod(self) -> Object:
        """The newest version of the object."""
        ...

    @property
    def states(self) -> Mapping[str, ContainerState]:
        """How its containers stand."""
        ...

    @property
    def ends(self) -> Mapping[str, asyncio.Event]:
        """Set for each container that is told to end."""
        ...

    @property
    def kill_at(self) -> float:
        """Until when on the monotonic clock all must have ended; infinite while nobody ends it."""
        ...

    def set_state(self, name: str, state: ContainerState) -> None:
        """Take the new state of a container."""
        ...

    def note(self, type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """Record an event."""
        ...


class ContainerRun:
    """A run that was started or found again."""

    def __init__(
        self,
        pod: OwnPod,
        container: Mapping[str, Any],
        instance: Instance,
        *,
        spec: Mapping[str, Any],
        port_map: Mapping[int, int],
    ) -> None:
        self.name: str = container["name"]
        self.instance = instance
        self._pod = pod
        if spec.get("standsIn"):
            # A stand-in has nothing that a probe could ask.
            container = {k: v for k, v in container.items() if not k.endswith("Probe")}
        self._container = container
        self._spec = spec
        self._port_map = port_map
        self._journal = pod.host.settings.journal
        self._clock = pod.host.clock
        self._is_told = False
        self._is_unhealthy = False

    def exec_target(self) -> ExecTarget:
        """How to run a command beside the process.

        Raises:
            LocalRunError: it does not run.
        """
        started = self.instance.read_started()
        if started is None:
            text = f'container "{self.name}" of pod {name_of(self._pod.pod)} does not run'
            raise LocalRunError(text)
        return build_exec_target(int(started["pid"]), self._spec)

    def hurry(self) -> None:
        """The pod must end sooner than this run was told."""
        if self._is_told:
            self.instance.stop(0, max(0.0, self._pod.kill_at - self._clock.monotonic()))

    async def follow(self) -> tuple[Terminated, float]:
        """See the run to its end: (how it ended, seconds that it ran)."""
        began = self._clock.monotonic()
        stopper = asyncio.create_task(self._stop_when_told(), name=f"stop {self.name}")
        prober: asyncio.Task[None] | None = None
        try:
            started = await self.instance.wait_started()
            if started is not None:
                self._tell_started()
            record = self.instance.read_exit()
            if started is not None and record is None:
                self._set_running(started)
                prober = asyncio.create_task(self._run_probes(), name=f"probe {self.name}")
            record = await self.instance.wait()
        finally:
            await cancel_all([task for task in (stopper, prober) if task])
        ran_s = self._clock.monotonic() - began
        return (self._lose() if record is None else self._end(record)), ran_s

    def _lose(self) -> Terminated:
        self.instance.kill_remains()
        lost = status.lose_container(self._state, render_time(self._pod.host.clock.now()))
        text = (
            f"Container {self.name} was lost: its supervisor was killed, or the machine restarted"
        )
        self._pod.note("Warning", status.STATUS_UNKNOWN, text)
        return lost

    def _end(self, record: Record) -> Terminated:
        ended = read_terminated(self.instance, record, self._container, self._spec)
        self._journal.record(
            ContainerExited(
                subject=subject_of(self._pod.pod),
                attempt=attempt_of(self._pod.pod),
                container=self.name,
                exit_code=ended.exit_code,
                signal=ended.signal,
                reason=ended.reason,
            )
        )
        if ended.reason == "StartError":
            self._pod.note("Warning", "Failed", f"Error: {ended.message}")
        elif ended.exit_code and not self._pod.ends[self.name].is_set():
            # Kubernetes deletes the last Pod of a Job without retries left: this is what stays.
            self._pod.note("Warning", CONTAINER_EXITED, status.describe_exit(self.name, ended))
        return ended

    @property
    def _state(self) -> ContainerState:
        return self._pod.states[self.name]

    def _set(self, state: ContainerState) -> None:
        self._pod.set_state(self.name, state)

    def _tell_started(self) -> None:
        self._journal.record(
            ContainerStarted(
                subject=subject_of(self._pod.pod),
                attempt=attempt_of(self._pod.pod),
                container=self.name,
                image=self._container.get("image", ""),
            )
        )

    def _set_running(self, started: Record) -> None:
        is_started = not self._container.get("startupProbe")
        self._set(
            replace(
                self._state,
                state=Running(started_at=_to_seconds(started["startedAt"])),
                started=is_started,
                ready=is_started and not self._container.get("readinessProbe"),
            ),
        )
        self._pod.note("Normal", "Started", f"Started container {self.name}")

    async def _stop_when_told(self) -> None:
        await self._pod.ends[self.name].wait()
        await self._stop(f"Stopping container {self.name}")

    async def _stop(self, text: str) -> None:
        self._pod.note("Normal", "Killing", text)
        if math.isinf(self._pod.kill_at):
            grace = dig(self._pod.pod, "spec", "terminationGracePeriodSeconds", default=30)
            kill_at = self._clock.monotonic() + grace
        else:
            kill_at = self._pod.kill_at
        hook = dig(self._container, "lifecycle", "preStop")
        if hook and kill_at > self._clock.monotonic():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, kill_at - self._clock.monotonic())):
                    await self._run_hook(hook, "preStop")
        self._is_told = True
        kill_at = min(kill_at, self._pod.kill_at)
        left_s = kill_at - self._clock.monotonic()
        if left_s <= 0 and hook:
            left_s = MINIMUM_GRACE_S
        self.instance.stop(find_stop_signal(self._container), max(0.0, left_s))

    # Probes and hooks.

    async def _run_hook(self, hook: Mapping[str, Any], noun: str) -> None:
        if "sleep" in hook:
            await asyncio.sleep(hook["sleep"].get("seconds") or 0)
            return
        try:
            await check_probe({**hook, "timeoutSeconds": 3600}, self._surroundings())
        except ProbeFailure as failure:
            self._pod.note("Warning", f"Failed{noun[0].upper()}{noun[1:]}Hook", str(failure))

    def _surroundings(self) -> ProbeSurroundings:

        async def run_command(command: Any) -> tuple[int, str]:
            try:
                target = self.exec_target()
            except LocalRunError as error:
                return 1, str(error)
            return await run_exec(target, command)

        def find_port(port: int | str) -> int:
            if isinstance(port, str) and not port.isdigit():
                rows = self._container.get("ports") or []
                port = next((r["containerPort"] for r in rows if r.get("name") == port), 0)
            number = int(port)
            return self._port_map.get(number, number)

        async def connect_inside(host: str, port: int) -> socket.socket:
            return await connect(self.exec_target(), host, port)

        has_network = self.exec_target().has_network
        return ProbeSurroundings(
            run_command=run_command,
            find_port=find_port,
            connect=connect_inside if has_network else None,
        )

    async def _run_probes(self) -> None:
        post_start = dig(self._container, "lifecycle", "postStart")
        if post_start:
            await self._run_hook(post_start, "postStart")
        surroundings = self._surroundings()
        startup = self._container.get("startupProbe")
        if startup:
            await run_probe(startup, surroundings, self._judge_startup())
            if self._is_unhealthy:
                await self._kill_unhealthy("startup")
                return
        kinds: list[Coroutine[Any, Any, None]] = []
        if self._container.get("readinessProbe"):
            judge = self._judge_readiness()
            kinds.append(run_probe(self._container["readinessProbe"], surroundings, judge))
        if self._container.get("livenessProbe"):
            kinds.append(self._watch_liveness(surroundings))
        await run_all(kinds)

    def _judge_startup(self) -> Callable[[bool, str], bool]:
        def judge(passed: bool, message: str) -> bool:
            if passed:
                ready = not self._container.get("readinessProbe")
                self._set(replace(self._state, started=True, ready=ready))
            else:
                self._note_unhealthy("startup", message)
                self._is_unhealthy = True
            return True

        return judge

    def _judge_readiness(self) -> Callable[[bool, str], bool]:
        def judge(passed: bool, message: str) -> bool:
            if not passed:
                self._note_unhealthy("readiness", message)
            if self._state.ready != passed:
                self._set(replace(self._state, ready=passed))
            return False

        return judge

    async def _watch_liveness(self, surroundings: ProbeSurroundings) -> None:
        def judge(passed: bool, message: str) -> bool:
            if not passed:
                self._note_unhealthy("liveness", message)
                self._is_unhealthy = True
            return not passed

        await run_probe(self._container["livenessProbe"], surroundings, judge)
        await self._kill_unhealthy("liveness")

    def _note_unhealthy(self, probe: str, message: str) -> None:
        self._pod.note("Warning", "Unhealthy", f"{probe.capitalize()} probe failed: {message}")
        self._journal.record(
            ProbeFailed(
                subject=subject_of(self._pod.pod),
                attempt=attempt_of(self._pod.pod),
                container=self.name,
                probe=probe,
                message=message,
            )
        )

    async def _kill_unhealthy(self, noun: str) -> None:
        text = f"Container {self.name} failed {noun} probe, will be restarted"
        await self._stop(text)


def read_terminated(
    instance: Instance,
    record: Record | None,
    container: Mapping[str, Any],
    spec: Mapping[str, Any] | None = None,
) -> Terminated:
    """How a run ended, by its exit record; unknown where there is none."""
    record = record or {"exitCode": 137, "reason": status.STATUS_UNKNOWN}
    code = int(record["exitCode"])
    message = record.get("message", "")
    if record.get("reason") == "StartError" and spec and spec.get("argv"):
        message = explain_start_error(spec, message)
    elif not message:
        message = read_termination_message(instance.folder, container, code)
    return Terminated(
        exit_code=code,
        reason=record.get("reason") or ("Completed" if code == 0 else "Error"),
        message=message,
        signal=int(record.get("signal", 0)),
        started_at=_to_seconds(record.get("startedAt", "")),
        finished_at=_to_seconds(record.get("finishedAt", "")),
        container_id=instance.container_id,
    )


def find_stop_signal(container: Mapping[str, Any]) -> int:
    """`lifecycle.stopSignal`, else SIGTERM."""
    name = dig(container, "lifecycle", "stopSignal", default="SIGTERM")
    number = getattr(signal, str(name), signal.SIGTERM)
    return int(number)


def read_termination_message(folder: Path, container: Mapping[str, Any], exit_code: int) -> str:
    """What the container left as its last words, by its terminationMessagePolicy."""
    try:
        data = (folder / TERMINATION_LOG).read_bytes()[:TERMINATION_MESSAGE_LIMIT]
    except OSError:
        data = b""
    if data:
        return data.decode(errors="replace")
    if container.get("terminationMessagePolicy") == "FallbackToLogsOnError" and exit_code != 0:
        return read_tail(folder / "log", FALLBACK_LINES, FALLBACK_BYTES)
    return ""


def _to_seconds(text: str) -> str:
    return text[:19] + "Z" if text else ""


async def run_all(work: list[Coroutine[Any, Any, Any]]) -> None:
    """Run coroutines side by side; the first failure ends the others."""
    if work:
        async with asyncio.TaskGroup() as group:
            for coroutine in work:
                group.create_task(coroutine)


async def cancel_all(tasks: list[Any]) -> None:
    """Cancel tasks and wait until they are gone."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
