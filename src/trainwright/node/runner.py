"""One pod's life: init containers, main containers and sidecars, until nothing of it runs."""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import shutil
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, Protocol

from trainwright.api.conditions import SECURITY_CONTEXT_IGNORED, WORKING_FOLDER_LOST
from trainwright.base.errors import ApiError, LocalRunError, Unreachable
from trainwright.base.objects import Object, dig, name_of, uid_of
from trainwright.base.times import parse_time, render_time
from trainwright.core.journal import attempt_of
from trainwright.node import security, status
from trainwright.node.container_run import (
    MINIMUM_GRACE_S,
    ContainerRun,
    cancel_all,
    read_terminated,
    run_all,
)
from trainwright.node.environment import ConfigError
from trainwright.node.exec import ExecTarget, read_surroundings
from trainwright.node.instance import (
    Instance,
    drop_instances,
    instance_folder,
    list_instances,
    start_instance,
)
from trainwright.node.preparation import ensure_group, observe_references, prepare_run
from trainwright.node.status import ContainerState, Running, Terminated, Waiting, is_sidecar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainwright.node.host import Host

KEPT_INSTANCES = 2
"""Runs whose logs are kept: the current and the previous one."""


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


class PodRunner:
    """Runs one pod. `run` returns once every process is gone and the last status is published."""

    def __init__(self, pod: Object, host: Host, reporter: Reporter) -> None:
        self.pod = pod
        self.host = host
        self._reporter = reporter
        self._journal = host.settings.journal
        self._folders = host.folders_of(uid_of(pod))
        self.states = status.initial_states(pod)
        self._runs: dict[str, ContainerRun] = {}
        self.ends: dict[str, asyncio.Event] = {name: asyncio.Event() for name in self.states}
        self._changed = asyncio.Event()
        self._progressed = asyncio.Event()
        self._kick = asyncio.Event()
        self._is_stopping = False
        self.kill_at = math.inf
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
        kill_at = self.host.clock.monotonic() + grace_s
        is_sooner = kill_at < self.kill_at or grace_s == 0
        self.kill_at = min(self.kill_at, kill_at)
        if not self._is_stopping:
            self._is_stopping = True
            self._reason, self._message = reason, message
            self._mark()
        for container in status.mains_of(self.pod):
            self.ends[container["name"]].set()
        for container in status.inits_of(self.pod):
            if not is_sidecar(container) or grace_s == 0:
                self.ends[container["name"]].set()
        if is_sooner:
            for run in self._runs.values():
                run.hurry()

    def exec_target(self, container: str) -> ExecTarget:
        """How to run a command beside the container's process.

        Raises:
            LocalRunError: it does not run.
        """
        run = self._runs.get(container)
        if run is None:
            raise LocalRunError(f'container "{container}" of pod {name_of(self.pod)} does not run')
        return run.exec_target()

    # The course of the pod.

    async def run(self) -> None:
        """Run the pod to its end; cancelling leaves its processes running (see `adopt`)."""
        publisher = asyncio.create_task(self._publish_changes(), name="publish pod status")
        deadline = asyncio.create_task(self._watch_deadline(), name="pod deadline")
        try:
            await self._run_containers()
            self._is_over = True
            await asyncio.to_thread(self.host.remove_secrets, uid_of(self.pod))
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
        self._tell_unmet()
        sidecars: list[tuple[str, asyncio.Task[int | None]]] = []
        try:
            if await self._run_inits(sidecars):
                await run_all([self._run_container(c) for c in status.mains_of(self.pod)])
            for name, task in reversed(sidecars):
                self.ends[name].set()
                await task
        finally:
            await cancel_all([task for _, task in sidecars])

    def _tell_unmet(self) -> None:
        unmet = security.find_unmet(self.pod, os.getuid())
        # A plane that finds the pod again has told it before.
        if unmet and not any(list_instances(self._folders.container(name)) for name in self.states):
            text = (
                f"{'; '.join(unmet)}: on the laptop a process has the rights of who runs the plane"
            )
            self.note("Warning", SECURITY_CONTEXT_IGNORED, text)

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
                self.set_state(name, replace(self.states[name], state=done))
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
        run = self._adopt(container)
        failures = self.states[name].restarts
        while True:
            if run is None:
                run = await self._start(container)
            if run is None:
                return None
            ended, ran_s = await self._follow(run)
            run = None
            may_restart = not self.ends[name].is_set() and not self._is_stopping
            restarts = may_restart and status.has_restart(
                self.pod, container, ended.exit_code, is_init=is_init
            )
            self.set_state(
                name,
                replace(
                    self.states[name],
                    state=ended, started=False, ready=False, will_restart=restarts,
                ),
            )  # fmt: skip
            if not restarts:
                return ended.exit_code
            failures = 1 if ran_s > self.host.settings.backoff_forget_s else failures + 1
            if not await self._back_off(container, ended, failures):
                return ended.exit_code
            state = self.states[name]
            self.set_state(
                name,
                replace(state, last=ended, restarts=state.restarts + 1, will_restart=False),
            )

    async def _back_off(
        self, container: Mapping[str, Any], ended: Terminated, failures: int
    ) -> bool:
        """Wait before a restart; False when the pod is told to end meanwhile."""
        name, settings = container["name"], self.host.settings
        wait_s = status.find_backoff_s(
            failures, base_s=settings.backoff_base_s, cap_s=settings.backoff_cap_s
        )
        if wait_s > 0:
            text = (
                f"back-off {wait_s:g}s restarting failed container={name} pod={name_of(self.pod)}"
            )
            before = self.states[name]
            waiting = Waiting(reason=status.CRASH_LOOP, message=text)
            self.set_state(name, replace(before, state=waiting, last=ended, will_restart=True))
            self.note("Warning", "BackOff", text)
            if await _wait_set(self.ends[name], wait_s):
                self.set_state(name, replace(before, will_restart=False))
                return False
        return not self.ends[name].is_set()

    # One run of one container.

    def _adopt(self, container: Mapping[str, Any]) -> ContainerRun | None:
        """Find the run that is there already, after a restart of the plane."""
        name = container["name"]
        instances = list_instances(self._folders.container(name))
        if not instances:
            return self._find_lost(container)
        current = instances[-1]
        last = None
        if len(instances) > 1:
            last = read_terminated(instances[-2], instances[-2].read_exit(), {})
        state = ContainerState(
            state=Waiting(reason=status.CREATING),
            restarts=current.number,
            last=last,
            container_id=current.container_id,
        )
        self.states[name] = state
        spec, ports = read_surroundings(current), self.host.ports.find_ports(self.pod)
        return ContainerRun(self, container, current, spec=spec, port_map=ports)

    def _find_lost(self, container: Mapping[str, Any]) -> ContainerRun | None:
        """A run that the pod's status tells of and that has left nothing here."""
        name = container["name"]
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
        spec = {"env": {}, "cwd": "/"}
        return ContainerRun(self, container, Instance(folder), spec=spec, port_map={})

    async def _start(self, container: Mapping[str, Any]) -> ContainerRun | None:
        """Start a run, waiting for what it refers to; None when the pod is told to end first."""
        name = container["name"]
        told = ""
        while not self.ends[name].is_set():
            try:
                return await self._start_once(container)
            except ConfigError as error:
                text = str(error)
            except (ApiError, Unreachable, LocalRunError, OSError) as error:
                text = f"the container could not be made: {error}"
            waiting = Waiting(reason=status.CONFIG_ERROR, message=text)
            self.set_state(name, replace(self.states[name], state=waiting))
            if text != told:
                self.note("Warning", "Failed", f"Error: {text}")
                told = text
            await self._wait_retry(name)
        return None

    async def _wait_retry(self, name: str) -> None:
        self._kick.clear()
        waits = [
            asyncio.create_task(self._kick.wait()),
            asyncio.create_task(self.ends[name].wait()),
        ]
        try:
            await asyncio.wait(
                waits,
                timeout=self.host.settings.config_retry_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            await cancel_all(waits)

    async def _start_once(self, container: Mapping[str, Any]) -> ContainerRun:
        name, host = container["name"], self.host
        number = self.states[name].restarts
        folder = instance_folder(self._folders.container(name), attempt_of(self.pod), number)
        observed = await observe_references(host, self.pod)
        await host.publish_bound(observed.claims)
        prepared = prepare_run(host, self.pod, container, folder, observed)
        container_id = secrets.token_hex(32)
        spec = ensure_group(host, prepared, container, f"trainwright://{container_id}")
        drop_instances(self._folders.container(name), number - KEPT_INSTANCES)
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
            self.note("Warning", WORKING_FOLDER_LOST, text)
        return ContainerRun(self, container, instance, spec=spec, port_map=prepared.port_map)

    async def _follow(self, run: ContainerRun) -> tuple[Terminated, float]:
        # Not forgotten when this is cancelled: `run` lets go of what runs on.
        self._runs[run.name] = run
        ended = await run.follow()
        del self._runs[run.name]
        return ended

    # Status.

    def reduce(self) -> Object:
        """The pod's status as of now."""
        return status.reduce_status(
            self.pod,
            self.states,
            now=self._now(),
            host_ip=self.host.settings.host_ip,
            killed=self._is_stopping,
            reason=self._reason,
            message=self._message,
            is_over=self._is_over,
        )

    def _now(self) -> str:
        return render_time(self.host.clock.now())

    def set_state(self, name: str, state: ContainerState) -> None:
        """Take the new state of a container, to be published."""
        if self.states[name] != state:
            self.states[name] = state
            self._mark()

    def _mark(self) -> None:
        self._changed.set()
        self._progressed.set()

    def note(self, type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """Record an event about the pod."""
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
        now = self.host.clock.now()
        began = parse_time(dig(self.pod, "status", "startTime", default=render_time(now)))
        due = began + timedelta(seconds=limit_s)
        # Short sleeps and a new look: a laptop's clock jumps when it wakes.
        while (left_s := (due - self.host.clock.now()).total_seconds()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(min(left_s, 30.0))
        grace = dig(self.pod, "spec", "terminationGracePeriodSeconds", default=30)
        text = "Pod was active on the node longer than the specified deadline"
        self.stop(grace, reason="DeadlineExceeded", message=text)


async def _wait_set(event: asyncio.Event, timeout_s: float) -> bool:
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return False
    return True
