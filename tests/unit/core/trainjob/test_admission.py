from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.core.trainjob.factories import (
    NOW,
    NOW_TEXT,
    make_job,
    make_jobset,
    make_runtime,
    make_trainjob,
)
from trainwright.api.kinds import CLUSTER_TRAINING_RUNTIME, TRAINING_RUNTIME, TRAINJOB, Kind
from trainwright.base.errors import render_errors
from trainwright.base.objects import Object, name_of
from trainwright.core.admission import Request, Verdict
from trainwright.core.plan import Apply
from trainwright.core.trainjob.admission import (
    default_trainjob,
    validate_runtime,
    validate_trainjob,
)
from trainwright.core.trainjob.plan import Observed, plan_trainjob
from trainwright.core.trainjob.settings import DEFAULT_SETTINGS

AGO = "2020-02-03T04:05:06Z"


def request(
    new: Object, *there: Object, old: Object | None = None, kind: Kind = TRAINJOB
) -> Request:
    objects = {(obj["kind"], name_of(obj)): obj for obj in there}

    def lookup(kind: Kind, namespace: str, name: str) -> Object | None:
        del namespace
        return objects.get((kind.kind, name))

    return Request(kind=kind, new=new, old=old, lookup=lookup, now=NOW)


def patch(manager: str = "acme.io/a", *, job: str = "node", **pod_spec: Any) -> Object:
    template = {"spec": {"template": {"spec": pod_spec}}}
    spec = {"replicatedJobs": [{"name": job, "template": template}]}
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": spec}}}


def refusal(verdict: Verdict) -> str:
    assert verdict.errors
    return render_errors(verdict.errors)


def snapshot_of(trainjob: Object, runtime: Object) -> Object:
    observed = Observed(trainjob=trainjob, runtime=runtime)
    action = plan_trainjob(observed, DEFAULT_SETTINGS, NOW).actions[0]
    assert isinstance(action, Apply)
    return dict(action.obj)


def test_patch_times_are_filled_kept_restored_and_renewed() -> None:
    old = make_trainjob(
        runtimePatches=[
            patch("a.io/same", nodeSelector={"x": "1"}) | {"time": AGO},
            patch("a.io/other", nodeSelector={"x": "1"}) | {"time": AGO},
        ]
    )
    new = make_trainjob(
        runtimePatches=[
            patch("a.io/same", nodeSelector={"x": "1"}) | {"time": "2021-01-01T00:00:00Z"},
            patch("a.io/other", nodeSelector={"x": "2"}) | {"time": AGO},
            {"manager": "a.io/new"},
            {"manager": "a.io/brought", "time": AGO},
        ]
    )
    admitted = default_trainjob(request(new, old=old))
    times = [entry["time"] for entry in admitted["spec"]["runtimePatches"]]
    assert times == [AGO, NOW_TEXT, NOW_TEXT, AGO]
    assert default_trainjob(request(admitted, old=admitted)) == admitted


def test_fields_of_older_trainers_become_patches_with_a_warning() -> None:
    said: list[str] = []
    override = {"targetJobs": [{"name": "node"}], "nodeSelector": {"zone": "a"}}
    old_form = make_trainjob(podSpecOverrides=[override])
    admitted = default_trainjob(replace(request(old_form, make_runtime()), warn=said.append))
    assert "podSpecOverrides" not in admitted["spec"]
    assert admitted["spec"]["runtimePatches"][0]["time"] == NOW_TEXT
    assert [text.partition(":")[0] for text in said] == ["spec.podSpecOverrides"]
    assert not validate_trainjob(request(admitted, make_runtime())).errors

    both = make_trainjob(podSpecOverrides=[override], runtimePatches=[patch("acme.io/a")])
    unchanged = default_trainjob(request(both))
    text = refusal(validate_trainjob(request(unchanged, make_runtime())))
    assert text.startswith("spec.podSpecOverrides: Forbidden")


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        pytest.param({"trainer": {"numNodes": -1}}, "spec.trainer.numNodes: Invalid", id="nodes"),
        pytest.param(
            {"trainer": {"numProcPerNode": 0}}, "spec.trainer.numProcPerNode: Invalid", id="procs"
        ),
        pytest.param(
            {"trainer": {"command": ["tune", "run"]}},
            "spec.trainer.command: Invalid",
            id="torchtune",
        ),
        pytest.param(
            {"runtimePatches": [patch("manager-1")]},
            'spec.runtimePatches.manager: Invalid value: "manager-1"',
            id="a manager without a domain",
        ),
        pytest.param(
            {"runtimePatches": [patch("kueue.x-k8s.io/")]},
            "spec.runtimePatches.manager",
            id="a manager without a path",
        ),
        pytest.param(
            {"runtimePatches": [patch(job="ghost")]},
            'names no job of the runtime; valid names: "node"',
            id="a job that is not there",
        ),
        pytest.param(
            {"runtimePatches": [patch(containers=[{"name": "ghost"}])]},
            'names no container of job "node" of the runtime; valid names: "node"',
            id="a container that is not there",
        ),
        pytest.param(
            {"runtimePatches": [patch(initContainers=[{"name": "node"}])]},
            'names no init container of job "node" of the runtime; valid names: none',
            id="an init container that is a regular one",
        ),
        pytest.param(
            {"runtimePatches": [patch(containers=[{"name": "node", "env": [{"name": "A"}]}])]},
            'may not set env of container "node"',
            id="env of the trainer by patch",
        ),
        pytest.param(
            {"initializer": {"model": {}}},
            'spec.runtimeRef: Invalid value: {"kind":"ClusterTrainingRuntime","name":"rt"}',
            id="an initializer without its job",
        ),
    ],
)
def test_a_trainjob_is_refused_at_the_field(spec: Any, text: str) -> None:
    verdict = validate_trainjob(request(make_trainjob(**spec), make_runtime()))
    assert text in refusal(verdict)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    spec: Object = {
        "trainer": {"numNodes": -1, "env": [{"name": "PET_NNODES"}, {"name": "PET_MASTER_ADDR"}]},
        "runtimePatches": [patch("bad", job="ghost")],
    }
    verdict = validate_trainjob(request(make_trainjob(**spec), make_runtime()))
    assert [error.path for error in verdict.errors] == [
        "spec.trainer.numNodes",
        "spec.runtimePatches.manager",
        "spec.trainer.env",
        "spec.runtimePatches",
    ]
    assert "PET_MASTER_ADDR, PET_NNODES are set by the Torch plugin" in refusal(verdict)


@pytest.mark.parametrize("policy", ["mpi", "jax", "xgboost", "flux"])
def test_policies_without_a_plugin_are_refused_and_warned_about(policy: str) -> None:
    runtime = make_runtime(ml_policy={policy: {}})
    verdict = validate_trainjob(request(make_trainjob(), runtime))
    assert f"mlPolicy.{policy} of this runtime is not supported yet" in refusal(verdict)
    verdict = validate_runtime(request(runtime, kind=CLUSTER_TRAINING_RUNTIME))
    assert not verdict.errors
    assert len(verdict.warnings) == 1


@pytest.mark.parametrize(
    ("annotation", "value", "accepted"),
    [
        ("ttl-seconds-after-finished", "0", True),
        ("ttl-seconds-after-finished", "-1", False),
        ("ttl-seconds-after-finished", "1h", False),
        ("run-in", "process", True),
        ("run-in", "container", False),
        ("run-in", "cloud", False),
        ("elastic-nodes", "1:2", False),
    ],
)
def test_our_annotations_are_checked(annotation: str, value: str, *, accepted: bool) -> None:
    name = f"trainwright.dev/{annotation}"
    trainjob = make_trainjob()
    trainjob["metadata"]["annotations"] = {name: value}
    verdict = validate_trainjob(request(trainjob, make_runtime()))
    assert [error.path for error in verdict.errors] == (
        [] if accepted else [f"metadata.annotations[{name}]"]
    )


@pytest.mark.parametrize(
    ("job", "nodes", "longest"),
    [
        pytest.param("node", 1, 63 - len("-node-0-0-abcde"), id="one node"),
        pytest.param("node", 1000, 63 - len("-node-0-999-abcde"), id="1000 nodes"),
        pytest.param(
            "dataset-initializer",
            1,
            63 - len("-dataset-initializer-0-0-abcde"),
            id="a job with a long name",
        ),
    ],
)
def test_the_longest_name_is_the_one_whose_pods_still_have_names(
    job: str, nodes: int, longest: int
) -> None:
    jobs = [make_job()] if job == "node" else [make_job(job, job), make_job()]
    runtime = make_runtime(*jobs)
    trainer = {"numNodes": nodes}
    fits = make_trainjob("a" * longest, trainer=trainer)
    assert not validate_trainjob(request(fits, runtime)).errors
    too_long = make_trainjob("a" * (longest + 1), trainer=trainer)
    text = refusal(validate_trainjob(request(too_long, runtime)))
    assert text.startswith("metadata.name: Invalid value")
    assert f"no longer than {longest} characters" in text


def test_patches_change_only_while_suspended_and_without_active_pods() -> None:
    before = [patch(nodeSelector={"zone": "a"})]
    after = [patch(nodeSelector={"zone": "b"})]
    running, stopped = (
        make_trainjob(suspend=suspend, runtimePatches=before) for suspend in (False, True)
    )
    changed = make_trainjob(runtimePatches=after)
    suspending = make_trainjob(suspend=True, runtimePatches=after)
    runtime = make_runtime()

    def verdict(new: Object, old: Object, *there: Object) -> Verdict:
        return validate_trainjob(request(new, runtime, *there, old=old))

    assert "spec.runtimePatches: Forbidden" in refusal(verdict(changed, running))
    assert not verdict(changed, stopped).errors
    assert not verdict(suspending, running).errors
    jobs = [{"name": "node", "active": 1}, {"name": "aux", "active": 0}]
    active = make_jobset(suspending, status={"replicatedJobsStatus": jobs})
    text = refusal(verdict(suspending, stopped, active))
    assert text == 'spec.runtimePatches: Forbidden: may not change while job "node" has active pods'
    assert not verdict(make_trainjob(suspend=True, runtimePatches=before), stopped, active).errors


def test_updates_are_held_against_the_snapshot_once_the_runtime_is_gone() -> None:
    old, new = make_trainjob(suspend=True), make_trainjob(suspend=False)
    snapshot = snapshot_of(old, make_runtime())
    assert not validate_trainjob(request(new, snapshot, old=old)).errors
    assert 'ClusterTrainingRuntime "rt" not found' in refusal(
        validate_trainjob(request(new, old=old))
    )
    labelled = old | {"metadata": old["metadata"] | {"labels": {"a": "b"}}}
    assert not validate_trainjob(request(labelled, old=old)).errors


def test_an_unknown_runtime_kind_is_refused_without_a_field() -> None:
    trainjob = make_trainjob(runtimeRef={"apiGroup": "acme.io", "kind": "Recipe", "name": "x"})
    verdict = validate_trainjob(request(trainjob))
    assert refusal(verdict) == "unsupported runtime: Recipe.acme.io"


def test_runtimes_are_validated_on_update_too() -> None:
    fine = make_runtime(kind="TrainingRuntime")
    wrong = make_runtime(make_job() | {"replicas": 2}, kind="TrainingRuntime")
    kind = TRAINING_RUNTIME
    assert not validate_runtime(request(fine, kind=kind)).errors
    verdict = validate_runtime(request(wrong, old=fine, kind=kind))
    assert [error.path for error in verdict.errors] == [
        "spec.template.spec.replicatedJobs[0].replicas"
    ]
