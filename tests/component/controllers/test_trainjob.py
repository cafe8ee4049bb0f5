"""The TrainJob controller over the real store and admission, without HTTP and without other controllers."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.journals import KeptJournal
from trainwright.api.kinds import (
    CLUSTER_TRAINING_RUNTIME,
    EVENT,
    JOBSET,
    RESOURCE_QUOTA,
    TRAINJOB,
    Kind,
)
from trainwright.base.errors import AlreadyExists
from trainwright.base.objects import Object, dig, find_condition
from trainwright.controllers.reconciler import ControllerLoop
from trainwright.controllers.trainjob import TrainJobController
from trainwright.core.journal import NO_JOURNAL, Journal, Transition, subject_of
from trainwright.core.runtimes import load_shipped_runtimes
from trainwright.machinery.api import PatchType
from trainwright.machinery.clock import SystemClock
from trainwright.machinery.events import EventRecorder
from trainwright.server.inprocess import InProcessApi, StoreLister
from trainwright.server.registry import Registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

LIMIT_S = 60.0
NAMESPACE = "default"


@dataclass(frozen=True)
class World:
    """A store with a running TrainJob controller."""

    api: InProcessApi
    lister: StoreLister

    async def create(self, kind: Kind, obj: Object) -> Object:
        return await self.api.create(kind, obj, field_manager="test")

    async def merge(self, kind: Kind, patch: Object, *, subresource: str = "") -> Object:
        return await self.api.patch(
            kind,
            NAMESPACE,
            "tj",
            patch,
            type=PatchType.MERGE,
            subresource=subresource,
            field_manager="test",
        )

    def get(self, kind: Kind) -> Object | None:
        return self.lister.get(kind, NAMESPACE, "tj")

    def own_condition(self) -> Object | None:
        conditions = dig(self.get(TRAINJOB), "status", "conditions", default=[])
        return next((c for c in conditions if c["type"].startswith("trainwright.dev/")), None)

    async def until(self, is_so: Callable[[], Any]) -> Any:
        async with asyncio.timeout(LIMIT_S):
            while not (value := is_so()):  # noqa: ASYNC110 - any state may be waited for
                await asyncio.sleep(0.02)
        return value


@contextlib.asynccontextmanager
async def running_world(
    folder: Path,
    journal: Journal = NO_JOURNAL,
    *,
    api_type: type[InProcessApi] = InProcessApi,
) -> AsyncIterator[World]:
    clock = SystemClock()
    registry = await Registry.open(folder, clock)
    api, lister = api_type(registry), StoreLister(registry)
    numbers = itertools.count()
    loop = ControllerLoop(
        TrainJobController(api=api, lister=lister, clock=clock),
        api=api,
        lister=lister,
        clock=clock,
        events=EventRecorder(api, clock, instance="test", new_suffix=lambda: f"e{next(numbers)}"),
        journal=journal,
    )
    for runtime in load_shipped_runtimes():
        with contextlib.suppress(AlreadyExists):
            await api.create(CLUSTER_TRAINING_RUNTIME, runtime, field_manager="test")
    task = asyncio.create_task(loop.run())
    try:
        yield World(api, lister)
    finally:
        loop.close()
        await task
        await registry.close()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running_world(tmp_path / "store") as running:
        yield running


class CountingApi(InProcessApi):
    """Counts applies of JobSets."""

    applies = 0

    async def patch(self, kind: Kind, *place: Any, **options: Any) -> Object:
        self.applies += kind == JOBSET
        return await super().patch(kind, *place, **options)


async def test_a_controller_that_starts_writes_nothing_that_is_right(tmp_path: Path) -> None:
    trainer = {"resourcesPerNode": {"requests": {"cpu": "1000m", "memory": "1024Mi"}}}
    async with running_world(tmp_path / "store") as world:
        await world.create(TRAINJOB, trainjob(suspend=True, trainer=trainer))
        await world.until(lambda: world.get(JOBSET))
        await world.until(lambda: dig(world.get(TRAINJOB), "status", "conditions"))
    async with running_world(tmp_path / "store", api_type=CountingApi) as world:
        await world.merge(TRAINJOB, {"metadata": {"annotations": {"look": "again"}}})
        await world.merge(TRAINJOB, {"spec": {"suspend": False}})
        await world.until(lambda: not dig(world.get(JOBSET), "spec", "suspend"))
        assert isinstance(world.api, CountingApi)
        assert world.api.applies == 1, "only the resume was applied"


async def test_changes_of_conditions_are_told_to_the_journal(tmp_path: Path) -> None:
    journal = KeptJournal()
    async with running_world(tmp_path / "store", journal) as world:
        await world.api.create(TRAINJOB, trainjob(suspend=True), field_manager="user")
        fact = await world.until(lambda: journal.facts[:1])
        stored = world.get(TRAINJOB)
    assert fact == [
        Transition(
            subject=subject_of(stored or {}),
            condition="Suspended",
            status="True",
            reason="Suspended",
            message="TrainJob is suspended",
        )
    ]


def trainjob(*, annotations: Object | None = None, **spec: Any) -> Object:
    return {
        "apiVersion": TRAINJOB.api_version,
        "kind": TRAINJOB.kind,
        "metadata": {"name": "tj", "namespace": NAMESPACE, "annotations": annotations or {}},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, **spec},
    }


async def test_a_name_that_jobset_refuses_is_said_in_the_trainjob(world: World) -> None:
    [runtime] = [r for r in load_shipped_runtimes() if r["metadata"]["name"] == "torch-distributed"]
    runtime["metadata"]["name"] = "odd"
    runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["name"] = "Node_A"
    await world.create(CLUSTER_TRAINING_RUNTIME, runtime)
    await world.create(TRAINJOB, trainjob(runtimeRef={"name": "odd"}))
    condition = await world.until(world.own_condition)
    assert condition["type"] == "trainwright.dev/ObjectsRefused"
    assert "Node_A" in condition["message"]
    assert world.get(JOBSET) is None
    events = await world.until(lambda: world.lister.list(EVENT, NAMESPACE))
    assert {event["reason"] for event in events} == {"TrainJobResourcesCreationFailed"}


async def test_a_lifted_quota_lets_the_trainjob_go_on_and_the_condition_goes(world: World) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none", "namespace": NAMESPACE},
        "spec": {"hard": {"count/jobsets.jobset.x-k8s.io": "0"}},
    }
    await world.create(RESOURCE_QUOTA, quota)
    await world.create(TRAINJOB, trainjob())
    condition = await world.until(world.own_condition)
    assert "exceeded quota" in condition["message"]
    await world.api.delete(RESOURCE_QUOTA, NAMESPACE, "none")
    await world.until(lambda: world.get(JOBSET))
    await world.until(lambda: world.own_condition() is None)
    assert dig(world.get(TRAINJOB), "status", "conditions") == []


def has_settled(world: World, suspend: bool) -> bool:
    condition = find_condition(world.get(TRAINJOB) or {}, "Suspended") or {}
    jobset_suspend = dig(world.get(JOBSET), "spec", "suspend")
    return jobset_suspend is suspend and condition.get("status") == str(suspend)


async def test_suspend_and_resume_reach_the_jobset_each_time(world: World) -> None:
    await world.create(TRAINJOB, trainjob())
    await world.until(lambda: world.get(JOBSET))
    uid = dig(world.get(JOBSET), "metadata", "uid")
    for suspend in (True, False, True, False):
        await world.merge(TRAINJOB, {"spec": {"suspend": suspend}})
        await world.until(functools.partial(has_settled, world, suspend))
    assert dig(world.get(JOBSET), "metadata", "uid") == uid
    assert world.lister.list(EVENT, NAMESPACE) == []


async def test_a_foreign_jobset_is_left_alone_until_it_goes(world: World) -> None:
    foreign = {
        "apiVersion": JOBSET.api_version,
        "kind": JOBSET.kind,
        "metadata": {"name": "tj", "namespace": NAMESPACE, "labels": {"mine": "yes"}},
        "spec": {
            "suspend": True,
            "replicatedJobs": [
                {
                    "name": "mine",
                    "template": {
                        "spec": {
                            "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}
                        }
                    },
                }
            ],
        },
    }
    before = await world.create(JOBSET, foreign)
    await world.create(TRAINJOB, trainjob())
    condition = await world.until(world.own_condition)
    assert condition["reason"] == "JobSetForeign"
    assert world.get(JOBSET) == before
    await world.api.delete(JOBSET, NAMESPACE, "tj")
    jobset = await world.until(lambda: world.get(JOBSET))
    assert dig(jobset, "metadata", "labels") is None
    await world.until(lambda: world.own_condition() is None)


async def test_a_completed_trainjob_is_deleted_at_the_end_of_its_time_to_live(
    world: World,
) -> None:
    ttl = {"trainwright.dev/ttl-seconds-after-finished": "0"}
    await world.create(TRAINJOB, trainjob(annotations=ttl))
    await world.until(lambda: world.get(JOBSET))
    done = {
        "type": "Completed",
        "status": "True",
        "reason": "AllJobsCompleted",
        "message": "jobset completed successfully",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }
    await world.merge(JOBSET, {"status": {"conditions": [done]}}, subresource="status")
    await world.until(lambda: world.get(TRAINJOB) is None)
