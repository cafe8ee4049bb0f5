"""The embedded controllers over a real registry, with a node that pretends to run pods."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from trainwright.api.kinds import NODE, POD
from trainwright.base.errors import ApiError
from trainwright.base.objects import dig, is_deleting, name_of, namespace_of, uid_of
from trainwright.base.times import render_time
from trainwright.controllers.garbage import GarbageController
from trainwright.controllers.job import JobController
from trainwright.controllers.jobset import JobSetController
from trainwright.controllers.namespace import NamespaceController
from trainwright.controllers.reconciler import ControllerLoop
from trainwright.controllers.scheduler import SchedulerController
from trainwright.core.job.backoff import BackoffSettings
from trainwright.machinery.api import DeleteOptions, PatchType
from trainwright.machinery.clock import SystemClock
from trainwright.machinery.events import EventRecorder
from trainwright.server.inprocess import InProcessApi, StoreLister
from trainwright.server.registry import Registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from trainwright.base.objects import Object
    from trainwright.machinery.api import WatchType

WITHIN_S = 60


class Cluster:
    """Controllers and a pretended node; `exit_codes` decides how a pod ends, None: it runs on."""

    def __init__(self, registry: Registry) -> None:
        self.api = InProcessApi(registry)
        self.lister = StoreLister(registry)
        self.exit_code: Callable[[Object], int | None] = lambda _: 0
        self._clock = SystemClock()
        self._changed: asyncio.Queue[Object] = asyncio.Queue()
        numbers = itertools.count()
        events = EventRecorder(
            self.api, self._clock, instance="test", new_suffix=lambda: f"{next(numbers):x}"
        )
        kinds = registry.stored_kinds
        backoff = BackoffSettings(base_s=0.01)
        self.loops = [
            ControllerLoop(
                controller,
                api=self.api,
                lister=self.lister,
                clock=self._clock,
                events=events,
            )
            for controller in (
                JobSetController(lister=self.lister, clock=self._clock),
                JobController(lister=self.lister, clock=self._clock, backoff=backoff),
                GarbageController(api=self.api, lister=self.lister, kinds=kinds),
                SchedulerController(lister=self.lister, clock=self._clock),
                NamespaceController(lister=self.lister, kinds=kinds, root_ca="PEM"),
            )
        ]
        for loop in self.loops:
            registry.on_kinds_changed(loop.follow)

    async def create(self, kind: Any, obj: Object) -> Object:
        return await self.api.create(kind, obj, field_manager="test")

    def find(self, kind: Any, name: str, namespace: str = "default") -> Object | None:
        return self.lister.get(kind, namespace, name)

    async def eventually(self, condition: Callable[[], Any]) -> Any:
        """What `condition` returns once it is true."""
        async with asyncio.timeout(WITHIN_S):
            while not (found := condition()):  # noqa: ASYNC110 - conditions here have no event
                await asyncio.sleep(0.01)
        return found

    async def run_node(self) -> None:
        def note(_type: WatchType, _old: Object | None, pod: Object) -> None:
            self._changed.put_nowait(pod)

        self.lister.subscribe(POD, note)
        while True:
            seen = await self._changed.get()
            pod = self.find(POD, name_of(seen), namespace_of(seen))
            if pod is not None and dig(pod, "spec", "nodeName"):
                with suppress(ApiError):
                    await self._advance(pod)

    async def _advance(self, pod: Object) -> None:
        phase = dig(pod, "status", "phase")
        ended = phase in ("Succeeded", "Failed")
        if is_deleting(pod) and ended and dig(pod, "metadata", "deletionGracePeriodSeconds"):
            options = DeleteOptions(grace_period_s=0, uid=uid_of(pod))
            await self.api.delete(POD, namespace_of(pod), name_of(pod), options)
        elif is_deleting(pod) and not ended:
            await self._end(pod, 143)
        elif phase == "Pending":
            stamp = render_time(self._clock.now())
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": stamp}
            kept = [c for c in pod["status"].get("conditions", []) if c["type"] != "Ready"]
            await self._report(pod, {"phase": "Running", "conditions": [*kept, ready]})
        elif phase == "Running" and (code := self.exit_code(pod)) is not None:
            await self._end(pod, code)

    async def _end(self, pod: Object, code: int) -> None:
        finished = {"exitCode": code, "finishedAt": render_time(self._clock.now())}
        container = {
            "name": "c",
            "image": "i",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"terminated": finished},
        }
        phase = "Failed" if code else "Succeeded"
        await self._report(pod, {"phase": phase, "containerStatuses": [container]})

    async def _report(self, pod: Object, status: Object) -> None:
        await self.api.patch(
            POD,
            namespace_of(pod),
            name_of(pod),
            {"status": status},
            type=PatchType.MERGE,
            subresource="status",
            field_manager="kubelet",
        )


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    registry = await Registry.open(tmp_path, SystemClock())
    made = Cluster(registry)
    node = make(NODE, "laptop")
    node["metadata"]["labels"] = {"kubernetes.io/os": "linux"}
    node["status"] = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}}
    await made.create(NODE, node)
    if not dig(made.find(NODE, "laptop", ""), "status", "allocatable"):
        body = {"status": node["status"]}
        await made.api.patch(
            NODE, "", "laptop", body,
            type=PatchType.MERGE, subresource="status", field_manager="kubelet",
        )  # fmt: skip
    tasks = [asyncio.create_task(loop.run()) for loop in made.loops]
    tasks.append(asyncio.create_task(made.run_node()))
    yield made
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await registry.close()


def make(kind: Any, name: str, namespace: str = "", **fields: Any) -> Object:
    """The smallest object of a kind."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields}


def make_job_spec(**fields: Any) -> Object:
    """A Job's spec: two pods."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    return {
        "parallelism": 2,
        "completions": 2,
        "backoffLimit": 0,
        "template": {"spec": pod},
        **fields,
    }
