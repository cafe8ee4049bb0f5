"""One pod's life: init containers, main containers and sidecars, until nothing of it runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import secrets
import shutil
import signal
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, Protocol

from trainwright.api.conditions import CONTAINER_EXITED, WORKING_FOLDER_LOST
from trainwright.base.errors import ApiError, LocalRunError, Unreachable
from trainwright.base.objects import Object, dig, name_of, uid_of
from trainwright.base.times import parse_time, render_time
from trainwright.core.journal import (
    ContainerExited,
    ContainerStarted,
    ProbeFailed,
    attempt_of,
    subject_of,
)
from trainwright.node import status
from trainwright.node.environment import ConfigError
from trainwright.node.exec import (
    ExecTarget,
    build_exec_target,
    connect,
    read_surroundings,
    run_exec,
)
from trainwright.node.host import (
    TERMINATION_LOG,
    Host,
    Observed,
    Prepared,
    ensure_group,
    explain_start_error,
    prepare_run,
)
from trainwright.node.instance import (
    Instance,
    Record,
    instance_folder,
    list_instances,
    start_instance,
)
from trainwright.node.logs import read_tail
from trainwright.node.probes import ProbeFailure, ProbeSurroundings, check_probe, run_probe
from trainwright.node.status import ContainerState, Running, Terminated, Waiting, is_sidecar

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine, Mapping
    from pathlib import Path

logger = logging.getLogger(__name__)

MINIMUM_GRACE_S = 2.0
"""A graceful end always leaves this long, as the kubelet does."""
KEPT_INSTANCES = 2
"""Runs whose logs are kept: the current and the previous one."""
TERMINATION_MESSAGE_LIMIT = 4096
FALLBACK_LINES, FALLBACK_BYTES = 80, 2048


class Reporter(Protocol):
    """Where a runner tells what happens."""

    async def publish(self, pod_uid: str, status: Object) -> None:
        """Write the status; return when it is written or the pod is gone."""
        ...

    def note(
        self, pod: Object, type: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        """Record an event."""
        ...


@dataclass(slots=True)
class _Run:
    """What a runner knows of the current run of one container."""

    instance: Instance
    spec: Mapping[str, Any]
    port_map: Mapping[int, int]
    is_told: bool = False
    is_unhealthy: bool = False


class PodRunner:
    """Runs one pod. `run` returns once every process is gone and the last status is published."""

    def __init__(self, pod: Object, host: Host, reporter: Reporter) -> None:
        self.pod = pod
        self._host = host
        self._reporter = reporter
        self._journal = host.settings.journal
        self._folders = host.folders_of(uid_of(pod))
        self.states = status.initial_states(pod)
        self._runs: dict[str, _Run] = {}
        self._ends: dict[str, asyncio.Event] = {name: asyncio.Event() for name in self.states}
        self._changed = asyncio.Event()
        self._progressed = asyncio.Event()
        self._kick = asyncio.Event()
        self._is_stopping = False
        self._kill_at = math.inf
        self._reason = self._message = ""
        self._is_over = False

    # What others may ask for.

    def update(self, pod: Object) -> None:
        """Take a newer version of the pod object."""
        self.pod = pod

    def kick(self) -> None:
        """Something that this pod may wait for has changed: look again."""
        self._kick.set()

    def stop(self, grace_s: float, *, reason: str = "", message: str = "") -> None:
        """End the pod within `grace_s` (0: at once). Repeated calls can only shorten it."""
        grace_s = max(grace_s, MINIMUM_GRACE_S) if grace_s > 0 else 0.0
        kill_at = self._host.clock.monotonic() + grace_s
        is_sooner = kill_at < self._kill_at or grace_s == 0
        self._kill_at = min(self._kill_at, kill_at)
        if not self._is_stopping:
            self._is_stopping = True
            self._reason, self._message = reason, message
            self._mark()
        for container in status.mains_of(self.pod):
            self._ends[container["name"]].set()
        for container in status.inits_of(self.pod):
            if not is_sidecar(container) or grace_s == 0:
                self._ends[container["name"]].set()
        if is_sooner:
            for run in self._runs.values():
                if run.is_told:
                    run.instance.stop(0, self._remaining_s())

    def exec_target(self, container: str) -> ExecTarget:
        """How to run a command beside the container's process.

        Raises:
            LocalRunError: it does not run.
        """
        run = self._runs.get(container)
        started = run.instance.read_started() if run else None
        if run is None or started is None:
            raise LocalRunError(f'container "{container}" of pod {name_of(self.pod)} does not run')
        return build_exec_target(int(started["pid"]), run.spec)

    # The course of the pod.

    async def run(self) -> None:
        """Run the pod to its end; cancelling leaves its processes running (see `adopt`)."""
        publisher = asyncio.create_task(self._publish_changes(), name="publish pod status")
        deadline = asyncio.create_task(self._watch_deadline(), name="pod deadline")
        try:
            await self._run_containers()
            self._is_over = True
            await asyncio.to_thread(self._host.remove_secrets, uid_of(self.pod))
            publisher.cancel()
            await self._reporter.publish(uid_of(self.pod), self.reduce())
        finally:
            for task in (publisher, deadline):
                task.cancel()
            await asyncio.gather(publisher, deadline, return_exceptions=True)
            if not self._is_over:
                for run in self._runs.values():
                    run.instance.detach()

    async def _run_containers(self) -> None:
        self._mark()
        sidecars: list[tuple[str, asyncio.Task[int | None]]] = []
        try:
            if await self._run_inits(sidecars):
                await _run_all([self._run_container(c) for c in status.mains_of(self.pod)])
            for name, task in reversed(sidecars):
                self._ends[name].set()
                await task
        finally:
            await _cancel_all([task for _, task in sidecars])

    async def _run_inits(self, sidecars: list[tuple[str, asyncio.Task[int | None]]]) -> bool:
        has_run = any(
            list_instances(self._folders.container(c["name"])) for c in status.mains_of(self.pod)
        )
        for container in status.inits_of(self.pod):
            name = container["name"]
            if is_sidecar(container):
                task = asyncio.create_task(self._run_container(container), name=f"sidecar {name}")
                sidecars.append((name, task))
                await self._wait_started(name, task)
            elif has_run and not list_instances(self._folders.container(name)):
                done = Terminated(exit_code=0, reason="Completed")
                self._set(name, replace(self.states[name], state=done))
            elif await self._run_container(container) != 0:
                return False
            if self._is_stopping:
                return has_run
        return True

    async def _wait_started(self, name: str, task: asyncio.Task[int | None]) -> None:
        while not (self.states[name].started or self._is_stopping or task.done()):
            self._progressed.clear()
            waits = [asyncio.create_task(self._progressed.wait()), task]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            waits[0].cancel()

    async def _run_container(self, container: Mapping[str, Any]) -> int | None:
        """Run a container until it is not restarted; its last exit code, None when it never ran."""
        name = container["name"]
        is_init = any(c["name"] == name for c in status.inits_of(self.pod))
        run = self._adopt(name)
        failures = self.states[name].restarts
        while True:
            if run is None:
                run = await self._start(container)
            if run is None:
                return None
            ended, ran_s = await self._follow(container, run)
            run = None
            may_restart = not self._ends[name].is_set() and not self._is_stopping
            restarts = may_restart and status.has_restart(
                self.pod, container, ended.exit_code, is_init=is_init
            )
            self._set(
                name,
                replace(
                    self.states[name],
                    state=ended, started=False, ready=False, will_restart=restarts,
                ),
            )  # fmt: skip
            if not restarts:
                return ended.exit_code
            failures = 1 if ran_s > self._host.settings.backoff_forget_s else failures + 1
            if not await self._back_off(container, ended, failures):
                return ended.exit_code
            state = self.states[name]
            self._set(
                name,
                replace(state, last=ended, restarts=state.restarts + 1, will_restart=False),
            )

    async def _back_off(
        self, container: Mapping[str, Any], ended: Terminated, failures: int
    ) -> bool:
        """Wait before a restart; False when the pod is told to end meanwhile."""
        name, settings = container["name"], self._host.settings
        wait_s = status.find_backoff_s(
            failures, base_s=settings.backoff_base_s, cap_s=settings.backoff_cap_s
        )
        if wait_s > 0:
            text = (
                f"back-off {wait_s:g}s restarting failed container={name} pod={name_of(self.pod)}"
            )
            before = self.states[name]
            waiting = Waiting(reason=status.CRASH_LOOP, message=text)
            self._set(name, replace(before, state=waiting, last=ended, will_restart=True))
            self._note("Warning", "BackOff", text)
            if await _wait_set(self._ends[name], wait_s):
                self._set(name, replace(before, will_restart=False))
                return False
        return not self._ends[name].is_set()

    # One run of one container.

    def _adopt(self, name: str) -> _Run | None:
        """Find the run that is there already, after a restart of the plane."""
        instances = list_instances(self._folders.container(name))
        if not instances:
            return self._find_lost(name)
        current = instances[-1]
        last = None
        if len(instances) > 1:
            last = self._read_terminated(instances[-2], instances[-2].read_exit(), {})
        state = ContainerState(
            state=Waiting(reason=status.CREATING),
            restarts=current.number,
            last=last,
            container_id=current.container_id,
        )
        self.states[name] = state
        spec = read_surroundings(current)
        return _Run(current, spec, self._host.ports.find_ports(self.pod))

    def _find_lost(self, name: str) -> _Run | None:
        """A run that the pod's status tells of and that has left nothing here."""
        rows = [
            *dig(self.pod, "status", "containerStatuses", default=[]),
            *dig(self.pod, "status", "initContainerStatuses", default=[]),
        ]
        row: Mapping[str, Any] = next((row for row in rows if row["name"] == name), {})
        started_at = dig(row, "state", "running", "startedAt")
        if not started_at:
            return None
        number = int(row.get("restartCount") or 0)
        self.states[name] = ContainerState(
            state=Running(started_at=started_at),
            restarts=number,
            container_id=row.get("containerID") or "",
        )
        folder = instance_folder(self._folders.container(name), attempt_of(self.pod), number)
        return _Run(Instance(folder), {"env": {}, "cwd": "/"}, {})

    async def _start(self, container: Mapping[str, Any]) -> _Run | None:
        """Start a run, waiting for what it refers to; None when the pod is told to end first."""
        name = container["name"]
        told = ""
        while not self._ends[name].is_set():
            try:
                return await self._start_once(container)
            except ConfigError as error:
                text = str(error)
            except (ApiError, Unreachable, LocalRunError, OSError) as error:
                text = f"the container could not be made: {error}"
            waiting = Waiting(reason=status.CONFIG_ERROR, message=text)
            self._set(name, replace(self.states[name], state=waiting))
            if text != told:
                self._note("Warning", "Failed", f"Error: {text}")
                told = text
            await self._wait_retry(name)
        return None

    async def _wait_retry(self, name: str) -> None:
        self._kick.clear()
        waits = [
            asyncio.create_task(self._kick.wait()),
            asyncio.create_task(self._ends[name].wait()),
        ]
        try:
            await asyncio.wait(
                waits,
                timeout=self._host.settings.config_retry_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            await _cancel_all(waits)

    async def _start_once(self, container: Mapping[str, Any]) -> _Run:
        name, host = container["name"], self._host
        number = self.states[name].restarts
        folder = instance_folder(self._folders.container(name), attempt_of(self.pod), number)
        observed = Observed(
            sources=await host.observe_sources(self.pod),
            claims=await host.observe_claims(self.pod),
            tokens=await host.observe_tokens(self.pod),
            siblings=await host.observe_siblings(self.pod) if host.has_namespaces else (),
        )
        await host.publish_bound(observed.claims)
        prepared: Prepared = prepare_run(host, self.pod, container, folder, observed)
        container_id = secrets.token_hex(32)
        spec = ensure_group(host, prepared, container, f"trainwright://{container_id}")
        self._drop_old_instances(name, number)
        if folder.exists():
            shutil.rmtree(folder)
        instance = start_instance(
            folder, spec, container_id=container_id, program=host.shim_program
        )
        self.states[name] = replace(self.states[name], container_id=f"trainwright://{container_id}")
        if prepared.lost_folder:
            text = (
                f"{prepared.lost_folder}, which the job was submitted from, is not there; "
                f"container {name} starts in an empty folder"
            )
            self._note("Warning", WORKING_FOLDER_LOST, text)
        return _Run(instance, spec, prepared.port_map)

    def _drop_old_instances(self, name: str, number: int) -> None:
        for instance in list_instances(self._folders.container(name)):
            if instance.number <= number - KEPT_INSTANCES:
                shutil.rmtree(instance.folder, ignore_errors=True)

    async def _follow(self, container: Mapping[str, Any], run: _Run) -> tuple[Terminated, float]:
        """See a run to its end: (how it ended, seconds that it ran)."""
        name = container["name"]
        self._runs[name] = run
        began = self._host.clock.monotonic()
        stopper = asyncio.create_task(self._stop_when_told(container, run), name=f"stop {name}")
        prober: asyncio.Task[None] | None = None
        try:
            started = await run.instance.wait_started()
            if started is not None:
                self._tell_started(container)
            record = run.instance.read_exit()
            if started is not None and record is None:
                if run.spec.get("standsIn"):
                    # A stand-in has nothing that a probe could ask.
                    container = {k: v for k, v in container.items() if not k.endswith("Probe")}
                self._set_running(container, started)
                prober = asyncio.create_task(self._run_probes(container, run), name=f"probe {name}")
            record = await run.instance.wait()
        finally:
            await _cancel_all([task for task in (stopper, prober) if task])
        ran_s = self._host.clock.monotonic() - began
        del self._runs[name]
        if record is None:
            run.instance.kill_remains()
            lost = status.lose_container(self.states[name], self._now())
            text = f"Container {name} was lost: its supervisor was killed, or the machine restarted"
            self._note("Warning", status.STATUS_UNKNOWN, text)
            return lost, ran_s
        ended = self._read_terminated(run.instance, record, container, run.spec)
        self._journal.record(
            ContainerExited(
                subject=subject_of(self.pod),
                attempt=attempt_of(self.pod),
                container=name,
                exit_code=ended.exit_code,
                signal=ended.signal,
                reason=ended.reason,
            )
        )
        if ended.reason == "StartError":
            self._note("Warning", "Failed", f"Error: {ended.message}")
        elif ended.exit_code and not self._ends[name].is_set():
            # Kubernetes deletes the last Pod of a Job without retries left: this is what stays.
            self._note("Warning", CONTAINER_EXITED, status.describe_exit(name, ended))
        return ended, ran_s

    def _tell_started(self, container: Mapping[str, Any]) -> None:
        self._journal.record(
            ContainerStarted(
                subject=subject_of(self.pod),
                attempt=attempt_of(self.pod),
                container=container["name"],
                image=container.get("image", ""),
            )
        )

    def _set_running(self, container: Mapping[str, Any], started: Record) -> None:
        name = container["name"]
        is_started = not container.get("startupProbe")
        self._set(
            name,
            replace(
                self.states[name],
                state=Running(started_at=_to_seconds(started["startedAt"])),
                started=is_started,
                ready=is_started and not container.get("readinessProbe"),
            ),
        )
        self._note("Normal", "Started", f"Started container {name}")

    def _read_terminated(
        self,
        instance: Instance,
        record: Record | None,
        container: Mapping[str, Any],
        spec: Mapping[str, Any] | None = None,
    ) -> Terminated:
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

    async def _stop_when_told(self, container: Mapping[str, Any], run: _Run) -> None:
        await self._ends[container["name"]].wait()
        await self._stop_run(container, run, f"Stopping container {container['name']}")

    async def _stop_run(self, container: Mapping[str, Any], run: _Run, text: str) -> None:
        self._note("Normal", "Killing", text)
        if math.isinf(self._kill_at):
            grace = dig(self.pod, "spec", "terminationGracePeriodSeconds", default=30)
            kill_at = self._host.clock.monotonic() + grace
        else:
            kill_at = self._kill_at
        hook = dig(container, "lifecycle", "preStop")
        if hook and kill_at > self._host.clock.monotonic():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, kill_at - self._host.clock.monotonic())):
                    await self._run_hook(container, hook, "preStop")
        run.is_told = True
        kill_at = min(kill_at, self._kill_at)
        left_s = kill_at - self._host.clock.monotonic()
        if left_s <= 0 and hook:
            left_s = MINIMUM_GRACE_S
        run.instance.stop(find_stop_signal(container), max(0.0, left_s))

    def _remaining_s(self) -> float:
        return max(0.0, self._kill_at - self._host.clock.monotonic())

    # Probes and hooks.

    async def _run_hook(
        self, container: Mapping[str, Any], hook: Mapping[str, Any], noun: str
    ) -> None:
        if "sleep" in hook:
            await asyncio.sleep(hook["sleep"].get("seconds") or 0)
            return
        try:
            await check_probe({**hook, "timeoutSeconds": 3600}, self._surroundings(container))
        except ProbeFailure as failure:
            self._note("Warning", f"Failed{noun[0].upper()}{noun[1:]}Hook", str(failure))

    def _surroundings(self, container: Mapping[str, Any]) -> ProbeSurroundings:
        name = container["name"]

        async def run_command(command: Any) -> tuple[int, str]:
            try:
                target = self.exec_target(name)
            except LocalRunError as error:
                return 1, str(error)
            return await run_exec(target, command)

        def find_port(port: int | str) -> int:
            if isinstance(port, str) and not port.isdigit():
                rows = container.get("ports") or []
                port = next((r["containerPort"] for r in rows if r.get("name") == port), 0)
            number = int(port)
            return self._runs[name].port_map.get(number, number)

        async def connect_inside(host: str, port: int) -> socket.socket:
            return await connect(self.exec_target(name), host, port)

        has_network = self.exec_target(name).has_network
        return ProbeSurroundings(
            run_command=run_command,
            find_port=find_port,
            connect=connect_inside if has_network else None,
        )

    async def _run_probes(self, container: Mapping[str, Any], run: _Run) -> None:
        post_start = dig(container, "lifecycle", "postStart")
        if post_start:
            await self._run_hook(container, post_start, "postStart")
        surroundings = self._surroundings(container)
        startup = container.get("startupProbe")
        if startup:
            await run_probe(startup, surroundings, self._judge_startup(container, run))
            if run.is_unhealthy:
                await self._kill_unhealthy(container, run, "startup")
                return
        kinds: list[Coroutine[Any, Any, None]] = []
        if container.get("readinessProbe"):
            judge = self._judge_readiness(container)
            kinds.append(run_probe(container["readinessProbe"], surroundings, judge))
        if container.get("livenessProbe"):
            kinds.append(self._watch_liveness(container, run, surroundings))
        await _run_all(kinds)

    def _judge_startup(
        self, container: Mapping[str, Any], run: _Run
    ) -> Callable[[bool, str], bool]:
        def judge(passed: bool, message: str) -> bool:
            name = container["name"]
            if passed:
                ready = not container.get("readinessProbe")
                self._set(name, replace(self.states[name], started=True, ready=ready))
            else:
                self._note_unhealthy(container, "startup", message)
                run.is_unhealthy = True
            return True

        return judge

    def _judge_readiness(self, container: Mapping[str, Any]) -> Callable[[bool, str], bool]:
        def judge(passed: bool, message: str) -> bool:
            name = container["name"]
            if not passed:
                self._note_unhealthy(container, "readiness", message)
            if self.states[name].ready != passed:
                self._set(name, replace(self.states[name], ready=passed))
            return False

        return judge

    async def _watch_liveness(
        self, container: Mapping[str, Any], run: _Run, surroundings: ProbeSurroundings
    ) -> None:
        def judge(passed: bool, message: str) -> bool:
            if not passed:
                self._note_unhealthy(container, "liveness", message)
                run.is_unhealthy = True
            return not passed

        await run_probe(container["livenessProbe"], surroundings, judge)
        await self._kill_unhealthy(container, run, "liveness")

    def _note_unhealthy(self, container: Mapping[str, Any], probe: str, message: str) -> None:
        self._note("Warning", "Unhealthy", f"{probe.capitalize()} probe failed: {message}")
        self._journal.record(
            ProbeFailed(
                subject=subject_of(self.pod),
                attempt=attempt_of(self.pod),
                container=container["name"],
                probe=probe,
                message=message,
            )
        )

    async def _kill_unhealthy(self, container: Mapping[str, Any], run: _Run, noun: str) -> None:
        name = container["name"]
        text = f"Container {name} failed {noun} probe, will be restarted"
        await self._stop_run(container, run, text)

    # Status.

    def reduce(self) -> Object:
        """The pod's status as of now."""
        return status.reduce_status(
            self.pod,
            self.states,
            now=self._now(),
            host_ip=self._host.settings.host_ip,
            killed=self._is_stopping,
            reason=self._reason,
            message=self._message,
            is_over=self._is_over,
        )

    def _now(self) -> str:
        return render_time(self._host.clock.now())

    def _set(self, name: str, state: ContainerState) -> None:
        if self.states[name] != state:
            self.states[name] = state
            self._mark()

    def _mark(self) -> None:
        self._changed.set()
        self._progressed.set()

    def _note(self, type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        self._reporter.note(self.pod, type, reason, message)

    async def _publish_changes(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._reporter.publish(uid_of(self.pod), self.reduce())

    async def _watch_deadline(self) -> None:
        """Source: pod spec.activeDeadlineSeconds, counted from status.startTime."""
        limit_s = dig(self.pod, "spec", "activeDeadlineSeconds")
        if limit_s is None:
            return
        now = self._host.clock.now()
        began = parse_time(dig(self.pod, "status", "startTime", default=render_time(now)))
        due = began + timedelta(seconds=limit_s)
        # Short sleeps and a new look: a laptop's clock jumps when it wakes.
        while (left_s := (due - self._host.clock.now()).total_seconds()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(min(left_s, 30.0))
        grace = dig(self.pod, "spec", "terminationGracePeriodSeconds", default=30)
        text = "Pod was active on the node longer than the specified deadline"
        self.stop(grace, reason="DeadlineExceeded", message=text)


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


async def _wait_set(event: asyncio.Event, timeout_s: float) -> bool:
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def _run_all(work: list[Coroutine[Any, Any, Any]]) -> None:
    if work:
        async with asyncio.TaskGroup() as group:
            for coroutine in work:
                group.create_task(coroutine)


async def _cancel_all(tasks: list[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
