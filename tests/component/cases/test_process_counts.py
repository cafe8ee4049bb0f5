"""Processes per node come from what the pod will really get, and the choice comes with its reason.

A job that only raised memory used to lose the runtime's GPUs when processes were counted; `auto`
used to mean the cores of the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.core.trainjob.factories import NOW, make_job, make_runtime, make_trainjob
from trainwright.api.kinds import TRAINJOB, Kind
from trainwright.core.admission import Request
from trainwright.core.trainjob.admission import validate_trainjob
from trainwright.core.trainjob.render import Rendered, render_trainjob

if TYPE_CHECKING:
    from trainwright.base.objects import Object

PROCESSES = "PET_NPROC_PER_NODE"


def render(runtime: Object, **trainer: Any) -> Rendered:
    return render_trainjob(make_trainjob(trainer=trainer), runtime)


def node_of(rendered: Rendered) -> Object:
    job = rendered.jobset["spec"]["replicatedJobs"][0]
    container: Object = job["template"]["spec"]["template"]["spec"]["containers"][0]
    return container


def processes_of(rendered: Rendered) -> str:
    values = {v["name"]: v.get("value", "") for v in node_of(rendered)["env"]}
    return str(values[PROCESSES])


def reason_of(rendered: Rendered) -> str:
    (reason,) = rendered.reasons.values()
    return reason


def with_limits(**limits: Any) -> Object:
    return make_runtime(make_job(resources={"limits": limits}))


def warnings_of(runtime: Object, **trainer: Any) -> list[str]:
    def lookup(kind: Kind, namespace: str, name: str) -> Object | None:
        del kind, namespace, name
        return runtime

    job = make_trainjob(trainer=trainer)
    verdict = validate_trainjob(Request(kind=TRAINJOB, new=job, old=None, lookup=lookup, now=NOW))
    assert not verdict.errors
    return list(verdict.warnings)


@pytest.mark.parametrize(
    ("gpu", "amount", "count"),
    [
        ("nvidia.com/gpu", 4, 4),
        ("amd.com/gpu", "4", 4),
        ("gpu.intel.com/i915", 2, 2),
        ("example.com/gpu", "500m", 1),
    ],
)
def test_a_job_that_only_raises_memory_keeps_the_gpus_of_its_runtime(
    gpu: str, amount: object, count: int
) -> None:
    rendered = render(
        with_limits(**{gpu: amount}), resourcesPerNode={"requests": {"memory": "64Gi"}}
    )
    assert node_of(rendered)["resources"] == {
        "limits": {gpu: str(amount)},
        "requests": {"memory": "64Gi"},
    }
    # torchrun counts the devices that the pod has, so this always agrees with its limit.
    assert processes_of(rendered) == "auto"
    assert reason_of(rendered) == f"torchrun starts one for each of the {count} GPUs of a node"


def test_a_job_may_take_the_gpus_of_its_runtime_away() -> None:
    rendered = render(
        with_limits(**{"nvidia.com/gpu": 4, "cpu": 8}),
        resourcesPerNode={"limits": {"nvidia.com/gpu": 0}},
    )
    assert processes_of(rendered) == "8"


@pytest.mark.parametrize(
    ("runtime", "trainer", "count", "reason"),
    [
        pytest.param(
            with_limits(cpu=2), {}, "2", "one for each of the 2 CPU cores of a node", id="limit"
        ),
        pytest.param(
            with_limits(cpu="1500m"),
            {},
            "2",
            "one for each of the 2 CPU cores of a node",
            id="a part of a core",
        ),
        pytest.param(
            with_limits(cpu=8),
            {"resourcesPerNode": {"limits": {"cpu": 2}}},
            "2",
            "one for each of the 2 CPU cores of a node",
            id="the job's limit",
        ),
        pytest.param(
            make_runtime(), {}, "1", "a node states neither GPUs nor CPU cores", id="no limit"
        ),
        pytest.param(
            with_limits(cpu=2), {"numProcPerNode": 3}, "3", "spec.trainer.numProcPerNode", id="said"
        ),
    ],
)
def test_without_gpus_processes_follow_the_cores_of_the_container(
    runtime: Object, trainer: Object, count: str, reason: str
) -> None:
    rendered = render(runtime, **trainer)
    assert processes_of(rendered) == count
    assert reason_of(rendered) == reason


def test_more_processes_than_gpus_are_warned_of() -> None:
    runtime = with_limits(**{"nvidia.com/gpu": 2})
    (warning,) = warnings_of(runtime, numProcPerNode=4)
    assert warning.startswith("spec.trainer.numProcPerNode: 4 processes share the 2 GPU(s)")
    assert warnings_of(runtime, numProcPerNode=2) == []
    assert warnings_of(runtime) == []
    assert warnings_of(make_runtime(), numProcPerNode=4) == []
