"""What the TrainJob controller does not see in its lister it asks for before it makes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.component.controllers.test_trainjob import trainjob
from trainwright.api.kinds import CLUSTER_TRAINING_RUNTIME, CONFIG_MAP, JOBSET, TRAINJOB
from trainwright.base.objects import Object, name_of, uid_of
from trainwright.controllers.reconciler import carry_out
from trainwright.controllers.trainjob import TrainJobController
from trainwright.core.plan import Apply, Plan
from trainwright.core.runtimes import load_shipped_runtimes
from trainwright.core.trainjob.settings import StatusServer, TrainJobSettings
from trainwright.machinery.clock import SystemClock
from trainwright.machinery.workqueue import Key
from trainwright.server.inprocess import InProcessApi
from trainwright.server.registry import Registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from trainwright.api.kinds import Kind

SETTINGS = TrainJobSettings(status_server=StatusServer(url="https://status:1", ca_pem="PEM"))


class OneObject:
    """A lister that has seen the TrainJob and nothing else yet."""

    def __init__(self, obj: Object) -> None:
        self._obj = obj

    def get(self, kind: Kind, _namespace: str, _name: str) -> Object | None:
        return self._obj if kind == TRAINJOB else None

    def list(self, *_: Any, **__: Any) -> list[Object]:
        return []


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[InProcessApi]:
    registry = await Registry.open(tmp_path, SystemClock())
    made = InProcessApi(registry)
    for runtime in load_shipped_runtimes():
        await made.create(CLUSTER_TRAINING_RUNTIME, runtime, field_manager="test")
    yield made
    await registry.close()


MOVED = TrainJobSettings(status_server=StatusServer(url="https://moved:1", ca_pem="OTHER"))


async def reconcile(api: InProcessApi, job: Object, settings: TrainJobSettings = SETTINGS) -> Plan:
    """One pass of a process that has just started."""
    controller = TrainJobController(
        api=api,
        lister=OneObject(job),  # type: ignore[arg-type]  # the part of Lister that it uses
        clock=SystemClock(),
        settings=lambda: settings,
    )
    outcome = await controller.reconcile(Key("default", name_of(job)))
    assert outcome is not None
    return outcome.plan


async def test_what_is_there_is_applied_with_its_uid_only(api: InProcessApi) -> None:
    made = await api.create(TRAINJOB, trainjob(suspend=True), field_manager="user")
    first = await reconcile(api, made)
    uids = {}
    for action in first.actions:
        assert isinstance(action, Apply)
        assert action.uid is None
        written = await carry_out(action, api, "trainer")
        uids[action.kind.kind, name_of(written)] = uid_of(written)
    assert len(uids) == 3
    assert (await reconcile(api, made)).actions == ()
    again = await reconcile(api, made, MOVED)
    applied = {(a.kind.kind, name_of(a.obj)): a.uid for a in again.actions if isinstance(a, Apply)}
    assert applied == {
        place: uid for place, uid in uids.items() if not place[1].endswith("-snapshot")
    }
    assert {kind for kind, _ in applied} == {JOBSET.kind, CONFIG_MAP.kind}
