"""The node agent: follows the pods that are bound to this node and keeps a runner for each."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from trainwright.api.kinds import (
    CONFIG_MAP,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SECRET,
)
from trainwright.base.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    LocalRunError,
    NotFound,
    Unreachable,
)
from trainwright.base.objects import (
    Object,
    ObjectView,
    dig,
    is_deleting,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)
from trainwright.base.times import parse_time, render_time
from trainwright.machinery.api import DeleteOptions, PatchType, WatchType
from trainwright.machinery.events import EventRecorder
from trainwright.node.attach import AttachQuery, AttachSession
from trainwright.node.exec import ExecSession, start_exec
from trainwright.node.host import Host
from trainwright.node.instance import list_instances
from trainwright.node.log_budget import trim_logs
from trainwright.node.logs import PodLogs
from trainwright.node.machine import build_node
from trainwright.node.ports import job_key_of
from trainwright.node.runner import PodRunner
from trainwright.node.settings import MANAGER
from trainwright.node.status import TERMINAL_PHASES, TERMINATED
from trainwright.node.volumes import remove_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from trainwright.base.times import Clock
    from trainwright.machinery.api import Api, Lister
    from trainwright.node.settings import NodeSettings

logger = logging.getLogger(__name__)

RETRY_S = 0.5
LONGEST_RETRY_S = 10.0
PAGE = 500


@dataclass(slots=True)
class _Held:
    """One pod that this node takes care of."""

    pod: Object
    runner: PodRunner | None = None
    task: asyncio.Task[None] | None = None
    is_gone: bool = False


class NodeAgent:
    """Runs the pods of one node as processes of this machine.

    `logs` and `exec` are the providers of the server's pods/log and pods/exec.
    """

    def __init__(self, api: Api, lister: Lister, settings: NodeSettings, clock: Clock) -> None:
        self._api = api
        self._lister = lister
        self._settings = settings
        self._clock = clock
        self._host = Host(api, settings, clock)
        self._recorder = EventRecorder(
            api, clock, instance=settings.node_name, new_suffix=lambda: secrets.token_hex(8)
        )
        self._held: dict[str, _Held] = {}
        self._next_trim_at = 0.0
        self._background: set[asyncio.Task[None]] = set()
        self._stopped = asyncio.Event()
        self._is_stopping = False
        self.logs = PodLogs(settings.pods_folder)

    @property
    def isolation(self) -> str:
        """What is in force: `namespace`, `mounts` (the network is the machine's), or `none`."""
        if self._host.has_networks:
            return "namespace"
        return "mounts" if self._host.has_namespaces else "none"

    async def run(self) -> None:
        """Register the node and run its pods until `stop`."""
        self._host.hold_memory()
        await self._ensure_node()
        await self._drop_leftovers()
        self._lister.subscribe(POD, self._see_pod)
        self._lister.subscribe(CONFIG_MAP, self._kick_namespace)
        self._lister.subscribe(SECRET, self._kick_namespace)
        self._lister.subscribe(PERSISTENT_VOLUME_CLAIM, self._see_claim)
        await self._stopped.wait()

    async def stop(self, kill: bool) -> None:
        """Stop following. `kill` ends the pods' processes too; else they run on and are found again."""
        self._is_stopping = True
        tasks = [held.task for held in self._held.values() if held.task]
        if kill:
            for held in self._held.values():
                if held.runner is not None:
                    held.runner.stop(0, reason=TERMINATED, message="the plane was stopped")
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*self._background, return_exceptions=True)
        self._host.release_memory()
        self._stopped.set()

    # The node object.

    async def _ensure_node(self) -> None:
        wanted = build_node(self._host.capacity, self._settings, render_time(self._clock.now()))
        name = self._settings.node_name
        try:
            await self._api.create(NODE, wanted, field_manager=MANAGER)
        except AlreadyExists:
            logger.debug("the node %s is registered already", name)
        live = await self._api.get(NODE, "", name)
        if _without_times(dig(live, "status", default={})) == _without_times(wanted["status"]):
            return
        await self._api.patch(
            NODE,
            "",
            name,
            {"status": wanted["status"]},
            type=PatchType.MERGE,
            subresource="status",
            field_manager=MANAGER,
        )

    async def _drop_leftovers(self) -> None:
        """Kill and remove what belongs to pods that went while no plane ran."""
        uids, jobs, token = set(), set(), ""
        while True:
            page = await self._api.list(POD, limit=PAGE, continue_token=token)
            for pod in page.items:
                uids.add(uid_of(pod))
                jobs.add(job_key_of(pod))
            token = page.continue_token
            if not token:
                break
        for uid in self._host.list_pod_uids() - uids:
            await self._kill_folder(uid)
        self._host.release_jobs_except(jobs)

    async def _kill_folder(self, uid: str) -> None:
        containers = self._host.folders_of(uid).pod / "containers"
        for container in containers.iterdir() if containers.is_dir() else ():
            for instance in list_instances(container)[-1:]:
                if instance.is_alive():
                    instance.stop(0, 0)
                    await instance.wait()
                elif instance.read_exit() is None:
                    instance.kill_remains()
        self._host.remove_folders(uid)

    # Pods, as they come, change and go. Handlers may not block: work goes to tasks.

    def _see_pod(self, type: WatchType, _before: Object | None, pod: Object) -> None:
        if self._is_stopping or dig(pod, "spec", "nodeName") != self._settings.node_name:
            return
        uid = uid_of(pod)
        held = self._held.get(uid)
        if type is WatchType.DELETED:
            self._lose_pod(uid, held)
            return
        if held is None:
            held = self._held[uid] = _Held(pod)
            if dig(pod, "status", "phase") in TERMINAL_PHASES:
                self._finish_deletion(held)
                return
            held.runner = PodRunner(pod, self._host, self)
            held.task = asyncio.create_task(self._run_pod(held), name=f"pod {name_of(pod)}")
        self._take_newer(held, pod)
        self._obey_deletion(held)

    def _take_newer(self, held: _Held, pod: Object) -> None:
        if _version(pod) >= _version(held.pod):
            held.pod = pod
            if held.runner is not None:
                held.runner.update(pod)

    def _obey_deletion(self, held: _Held) -> None:
        if not is_deleting(held.pod):
            return
        if held.runner is not None and held.task is not None and not held.task.done():
            deadline = parse_time(held.pod["metadata"]["deletionTimestamp"])
            left_s = (deadline - self._clock.now()).total_seconds()
            grace_s = dig(held.pod, "metadata", "deletionGracePeriodSeconds", default=0)
            held.runner.stop(max(left_s, 0.001) if grace_s else 0)
        else:
            self._finish_deletion(held)

    def _lose_pod(self, uid: str, held: _Held | None) -> None:
        if held is None:
            return
        held.is_gone = True
        if held.runner is not None and held.task is not None and not held.task.done():
            # Forced: the object is gone at once, the processes must follow.
            held.runner.stop(0)
        else:
            self._forget(uid)

    def _forget(self, uid: str) -> None:
        held = self._held.pop(uid, None)
        self._spawn(asyncio.to_thread(self._host.remove_folders, uid), f"remove pod {uid}")
        if held is not None:
            job = job_key_of(held.pod)
            if all(job_key_of(other.pod) != job for other in self._held.values()):
                self._host.release_job(job)

    def _kick_namespace(self, _type: WatchType, _before: Object | None, obj: Object) -> None:
        for held in self._held.values():
            if held.runner is not None and namespace_of(held.pod) == namespace_of(obj):
                held.runner.kick()

    def _see_claim(self, type: WatchType, before: Object | None, claim: Object) -> None:
        self._kick_namespace(type, before, claim)
        if type is WatchType.DELETED:
            folder = self._host.claims_folder() / namespace_of(claim) / uid_of(claim)
            if uid_of(claim) and folder.exists():
                remove_tree(folder)

    async def _run_pod(self, held: _Held) -> None:
        runner = held.runner
        if runner is None:
            return
        uid = uid_of(held.pod)
        try:
            await runner.run()
        except Exception:  # a task's outermost edge
            logger.exception("the runner of pod %s failed", name_of(held.pod))
            text = "the node failed to run this pod; its log says why. Delete the pod to try again"
            self.note(held.pod, "Warning", "FailedSync", text)
        if not held.is_gone and is_deleting(held.pod) and not self._is_stopping:
            await self._delete(held)
        if held.is_gone:
            self._forget(uid)
        elif not self._is_stopping:
            await self._trim_logs()

    async def _trim_logs(self) -> None:
        """Keep the logs of ended pods to their budget; looked at now and then, since it takes long."""
        now = self._clock.monotonic()
        if now < self._next_trim_at:
            return
        self._next_trim_at = now + self._settings.log_trim_interval_s
        running = frozenset(
            uid for uid, held in self._held.items() if held.task and not held.task.done()
        )
        budget = self._settings.max_ended_log_bytes
        try:
            gone = await asyncio.to_thread(trim_logs, self._settings.pods_folder, running, budget)
        except OSError as error:  # a pod was removed meanwhile
            logger.info("logs were not trimmed: %s", error)
            return
        if gone:
            logger.warning("%d old log files were removed: more than %d bytes", gone, budget)

    def _finish_deletion(self, held: _Held) -> None:
        if is_deleting(held.pod) and dig(held.pod, "metadata", "deletionGracePeriodSeconds"):
            self._spawn(self._delete(held), f"delete pod {name_of(held.pod)}")

    async def _delete(self, held: _Held) -> None:
        """The last step of a graceful deletion: nothing runs any more, the object may go."""
        pod = held.pod
        options = DeleteOptions(grace_period_s=0, uid=uid_of(pod))

        async def delete() -> None:
            with contextlib.suppress(NotFound, Conflict):
                await self._api.delete(POD, namespace_of(pod), name_of(pod), options)

        await self._insist(delete, f"deleting pod {name_of(pod)}")

    # Reports of the runners.

    async def publish(self, pod_uid: str, status: Object) -> None:
        """Write a pod's status, computed again from a fresh pod when somebody else wrote meanwhile."""
        held = self._held.get(pod_uid)
        if held is None or held.is_gone:
            return

        async def write() -> None:
            await self._write_status(held, status)

        await self._insist(write, f"writing the status of pod {name_of(held.pod)}")

    async def _write_status(self, held: _Held, status: Object) -> None:
        wanted = status
        while not held.is_gone:
            pod = held.pod
            if _has_status(pod, wanted):
                return
            patch = {
                "metadata": {"resourceVersion": resource_version_of(pod), "uid": uid_of(pod)},
                "status": {"reason": None, "message": None, **wanted},
            }
            try:
                self._take_newer(
                    held,
                    await self._api.patch(
                        POD,
                        namespace_of(pod),
                        name_of(pod),
                        patch,
                        type=PatchType.MERGE,
                        subresource="status",
                        field_manager=MANAGER,
                    ),
                )
            except NotFound:
                return
            except Conflict:
                if not await self._read_again(held):
                    return
                if held.runner is not None:
                    wanted = held.runner.reduce()
            else:
                return

    async def _read_again(self, held: _Held) -> bool:
        pod = held.pod
        try:
            live = await self._api.get(POD, namespace_of(pod), name_of(pod))
        except NotFound:
            return False
        if uid_of(live) != uid_of(pod):
            return False
        self._take_newer(held, live)
        return True

    async def _insist(self, work: Callable[[], Coroutine[Any, Any, None]], what: str) -> None:
        """Do `work` until the server has answered; refusals are logged and given up.

        While this agent stops there is no second try: a full disk must not keep it from ending, and
        what was not written is seen again in the pod's folder at the next start.
        """
        wait_s = RETRY_S
        while True:
            try:
                await work()
            except Unreachable as error:
                logger.warning("%s: %s; trying again", what, error)
            except ApiError as error:
                if error.status_code < 500 and error.status_code != 429:
                    logger.warning("%s was refused: %s", what, error)
                    return
                logger.warning("%s: %s; trying again", what, error)
            else:
                return
            if self._is_stopping:
                return
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, LONGEST_RETRY_S)

    def note(
        self, pod: Object, type: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        """Record an event about a pod."""
        subject = {"apiVersion": POD.api_version, "kind": POD.kind, **pod}
        record = self._recorder.record(
            MANAGER, subject, type=type, reason=reason, note=message, action=reason
        )
        self._spawn(record, f"event {reason}")

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # Commands beside a container.

    async def exec(self, pod: Object, options: Any) -> ExecSession:
        """Start a command in the surroundings of a container.

        Raises:
            BadRequest: the container does not run, or the command cannot be started.
        """
        runner = self._find_running(pod)
        try:
            target = runner.exec_target(options.container)
            return await start_exec(target, options.command, stdin=options.stdin, tty=options.tty)
        except LocalRunError as error:
            raise BadRequest(str(error)) from error
        except OSError as error:
            raise BadRequest(f'cannot start "{options.command[0]}": {error}') from error

    async def attach(self, pod: Object, options: Any) -> AttachSession:
        """Show the output of a running container until this run of it ends.

        Raises:
            BadRequest: the container does not run.
        """
        try:
            self._find_running(pod).exec_target(options.container)
        except LocalRunError as error:
            raise BadRequest(str(error)) from error
        query = AttachQuery(container=options.container)
        return AttachSession(self.logs.read_log(pod, query))

    def _find_running(self, pod: ObjectView) -> PodRunner:
        held = self._held.get(uid_of(pod))
        if held is None or held.runner is None:
            raise BadRequest(f"pod {name_of(pod)} does not run")
        return held.runner


def _version(obj: ObjectView) -> int:
    text = resource_version_of(obj)
    return int(text) if text.isdigit() else 0


def _has_status(pod: ObjectView, wanted: ObjectView) -> bool:
    """Whether a pod's status holds all that is wanted, so that nothing need be written."""
    present = dig(pod, "status", default={})
    same = all(_strip(present.get(key)) == _strip(value) for key, value in wanted.items())
    return same and ("reason" in wanted or "reason" not in present)


def _strip(value: Any) -> Any:
    """A value without nulls, which the server may drop."""
    if isinstance(value, dict):
        return {key: _strip(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_strip(item) for item in value]
    return value


def _without_times(status: ObjectView) -> Object:
    conditions = [
        {key: value for key, value in row.items() if not key.endswith("Time")}
        for row in dig(status, "conditions", default=[])
    ]
    return {**status, "conditions": conditions}
