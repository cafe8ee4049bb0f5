from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.core.trainjob.factories import make_trainjob
from trainwright.api.kinds import TRAINJOB
from trainwright.core.plan import Plan, build_status_patch
from trainwright.core.trainjob.throttle import hold_back_counts

if TYPE_CHECKING:
    from trainwright.base.objects import Object


def counts(*, ready: int, active: int) -> list[Object]:
    numbers = {"ready": ready, "succeeded": 0, "failed": 0, "active": active, "suspended": 0}
    return [{"name": "node", **numbers}]


def trainjob(*, suspend: bool = False) -> Object:
    return make_trainjob(suspend=suspend, status={"jobsStatus": counts(ready=1, active=4)})


def plan_for(job: Object, status: Object) -> Plan:
    return Plan(status=build_status_patch(TRAINJOB, job, status), requeue_after_s=30.0)


MORE_READY = {"jobsStatus": counts(ready=2, active=4)}


def test_counts_alone_wait_until_a_second_has_passed() -> None:
    plan = plan_for(trainjob(), MORE_READY)
    assert hold_back_counts(plan, trainjob(), 0.25) == Plan(requeue_after_s=0.75)
    assert hold_back_counts(plan, trainjob(), 1.0) == plan
    assert hold_back_counts(plan, trainjob(), None) == plan


@pytest.mark.parametrize(
    ("job", "status"),
    [
        pytest.param(
            trainjob(), {**MORE_READY, "conditions": [{"type": "Complete"}]}, id="a condition"
        ),
        pytest.param(
            trainjob(), {"jobsStatus": counts(ready=0, active=0)}, id="no active pod left"
        ),
        pytest.param(trainjob(suspend=True), MORE_READY, id="a suspended job"),
    ],
)
def test_what_queues_decide_by_never_waits(job: Object, status: Object) -> None:
    plan = plan_for(job, status)
    assert hold_back_counts(plan, job, 0.0) == plan
