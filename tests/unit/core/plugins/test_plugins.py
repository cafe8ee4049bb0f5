from __future__ import annotations

from pathlib import Path

import pytest

import trainwright.core.plugins as package
from tests.unit.core.trainjob.factories import make_job, make_runtime, make_trainjob
from trainwright.api.env import Writer, reserved_names
from trainwright.api.kinds import CLUSTER_TRAINING_RUNTIME
from trainwright.api.schemas.registry import schema_of
from trainwright.api.trainjob import parse_runtime, parse_trainjob
from trainwright.base.objects import Object, dig, name_of
from trainwright.core.admission import Request
from trainwright.core.findings import CODES
from trainwright.core.plugins import ML_POLICIES, PLUGINS, POD_GROUP_POLICIES
from trainwright.core.runtimes import load_shipped_runtimes
from trainwright.core.trainjob.admission import validate_runtime, validate_trainjob
from trainwright.core.trainjob.build import build_job, plan_podsets
from trainwright.schema.validation import find_schema_errors


def processes(*, on_job: Object | None = None, on_runtime: Object | None = None) -> str:
    trainer = {} if on_job is None else {"resourcesPerNode": on_job}
    runtime = make_runtime(make_job(resources=on_runtime or {}))
    job = build_job(parse_trainjob(make_trainjob(trainer=trainer)), parse_runtime(runtime))
    env = {v["name"]: v.get("value", "") for v in plan_podsets(job)[0].containers[0].env}
    return str(env["PET_NPROC_PER_NODE"])


def test_the_order_of_plugins_is_part_of_the_contract() -> None:
    assert [plugin.name for plugin in PLUGINS] == ["Torch", "PlainML", "TrainJobStatus", "JobSet"]


def test_each_plugin_has_a_folder_of_the_same_shape() -> None:
    folder = Path(package.__file__).parent
    for plugin in PLUGINS:
        files = {path.name for path in (folder / plugin.name.lower()).glob("*.py")}
        assert {"__init__.py", "names.py", "plugin.py"} <= files


def test_every_policy_of_the_schema_is_served_or_refused() -> None:
    schema = schema_of(CLUSTER_TRAINING_RUNTIME)
    known = set(dig(schema, "properties", "spec", "properties", "mlPolicy", "properties"))
    assert known - {"numNodes"} == set(ML_POLICIES)
    gang = dig(schema, "properties", "spec", "properties", "podGroupPolicy", "properties")
    assert set(gang) == set(POD_GROUP_POLICIES)


@pytest.mark.parametrize(
    ("on_job", "on_runtime", "expected"),
    [
        pytest.param(None, None, "1", id="nothing is said"),
        pytest.param({"limits": {"cpu": "2500m"}}, None, "3", id="cores are rounded up"),
        pytest.param({"requests": {"cpu": 0}, "limits": {"cpu": 4}}, None, "4", id="no request"),
        pytest.param({"limits": {"example.com/gpu": 2}}, None, "auto", id="a GPU by name"),
        pytest.param({"limits": {"google.com/tpu": 2}}, None, "1", id="a TPU is no GPU"),
        pytest.param(
            {"limits": {"memory": "1Gi"}},
            {"limits": {"nvidia.com/gpu": 4}},
            "auto",
            id="the GPU of the runtime stays when the job asks for memory",
        ),
    ],
)
def test_torch_counts_processes_from_the_merged_resources(
    on_job: Object | None, on_runtime: Object | None, expected: str
) -> None:
    assert processes(on_job=on_job, on_runtime=on_runtime) == expected


def test_shipped_runtimes_are_valid_and_take_a_trainjob() -> None:
    schema = schema_of(CLUSTER_TRAINING_RUNTIME)
    assert schema is not None
    runtimes = {name_of(runtime): runtime for runtime in load_shipped_runtimes()}
    assert set(runtimes) == {"plain-distributed", "torch-distributed"}
    for name, runtime in runtimes.items():
        assert find_schema_errors(schema, runtime) == []
        request = Request(
            kind=CLUSTER_TRAINING_RUNTIME,
            new=runtime,
            old=None,
            lookup=lambda *_: None,
            now=None,  # type: ignore[arg-type]  # no rule here reads the time
        )
        verdict = validate_runtime(request)
        assert (verdict.errors, verdict.warnings) == ([], [])
        trainjob = make_trainjob(runtimeRef={"name": name})
        job = Request(
            kind=CLUSTER_TRAINING_RUNTIME,
            new=trainjob,
            old=None,
            lookup=lambda *_, found=runtime: found,
            now=None,  # type: ignore[arg-type]  # no rule here reads the time
        )
        assert validate_trainjob(job).errors == []
        assert dig(runtime, "metadata", "labels", "trainer.kubeflow.org/framework")


def test_each_finding_tells_what_to_do() -> None:
    for code, row in CODES.items():
        assert code.isidentifier()
        assert row.meaning.endswith(".")
        assert not row.next_step.endswith(".")


def test_torch_sets_exactly_the_variables_that_are_reserved_for_it() -> None:
    job = build_job(parse_trainjob(make_trainjob()), parse_runtime(make_runtime()))
    env = plan_podsets(job)[0].containers[0].env
    assert tuple(variable["name"] for variable in env) == reserved_names(Writer.TORCH)
