"""PodSets rendered to plain text: what a job runs must be readable without JobSet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.core.trainjob.factories import make_job, make_runtime, make_trainjob
from trainwright.api.trainjob import parse_runtime, parse_trainjob
from trainwright.core.trainjob.build import build_job, plan_podsets
from trainwright.core.trainjob.podset import Container, PodSets
from trainwright.core.trainjob.render import render_trainjob

if TYPE_CHECKING:
    from trainwright.base.objects import Object


def render_text(podsets: PodSets) -> str:
    lines = []
    for podset in podsets:
        lines.append(f"{podset.replicas} x {podset.count} {podset.name} ({podset.ancestor or '-'})")
        for container in (*podset.init_containers, *podset.containers):
            words = " ".join((*container.command, *container.args)) or "its own command"
            lines.append(f"  {container.name}: {container.image} runs {words}")
            lines += [f"    {v['name']}={v.get('value', '<source>')}" for v in container.env]
    return "\n".join(lines)


def podsets_of(trainjob: Object, runtime: Object) -> PodSets:
    return plan_podsets(build_job(parse_trainjob(trainjob), parse_runtime(runtime)))


def test_podsets_say_what_runs_in_which_order() -> None:
    runtime = make_runtime(
        make_job("dataset-initializer", "dataset-initializer", image="fetch:1"),
        make_job(args=["--from-runtime"], env=[{"name": "KEEP", "value": "1"}]),
    )
    trainjob = make_trainjob(
        initializer={"dataset": {"storageUri": "hf://org/d", "secretRef": {"name": "hub"}}},
        trainer={"numNodes": 3, "command": ["python", "t.py"], "env": [{"name": "LR"}]},
    )
    podsets = podsets_of(trainjob, runtime)
    assert render_text(podsets) == (
        "1 x 1 dataset-initializer (dataset-initializer)\n"
        "  dataset-initializer: fetch:1 runs its own command\n"
        "    STORAGE_URI=hf://org/d\n"
        "1 x 3 node (trainer)\n"
        "  node: base:1 runs python t.py --from-runtime\n"
        "    KEEP=1\n"
        "    LR=\n"
        "    PET_NNODES=3\n"
        "    PET_NPROC_PER_NODE=1\n"
        "    PET_NODE_RANK=<source>\n"
        "    PET_MASTER_ADDR=tj-node-0-0.tj\n"
        "    PET_MASTER_PORT=29500"
    )
    assert podsets[0].containers[0].env_from == ({"secretRef": {"name": "hub"}},)


def test_ports_are_the_same_by_number_and_protocol_or_by_name() -> None:
    ports = ({"containerPort": 8080}, {"containerPort": 9000, "name": "web"})
    container = Container(name="c", ports=ports)
    assert container.with_ports([{"containerPort": 8080, "protocol": "TCP"}]).ports == (
        {"containerPort": 8080, "protocol": "TCP"},
        ports[1],
    )
    assert len(container.with_ports([{"containerPort": 8080, "protocol": "UDP"}]).ports) == 3
    assert container.with_ports([{"containerPort": 9001, "name": "web"}]).ports == (
        ports[0],
        {"containerPort": 9001, "name": "web"},
    )


def test_a_policy_with_zero_nodes_still_has_one_but_a_trainjob_may_have_none() -> None:
    runtime = make_runtime(ml_policy={"numNodes": 0, "torch": {}})
    assert podsets_of(make_trainjob(), runtime)[0].count == 1
    assert podsets_of(make_trainjob(trainer={"numNodes": 0}), runtime)[0].count == 0


def test_each_field_says_where_it_comes_from() -> None:
    pod = {"spec": {"template": {"spec": {"nodeSelector": {"zone": "b"}}}}}
    patch = {
        "manager": "acme.io/ops",
        "trainingRuntimeSpec": {
            "template": {
                "metadata": {"labels": {"team": "b"}},
                "spec": {"replicatedJobs": [{"name": "node", "template": pod}]},
            }
        },
    }
    trainjob = make_trainjob(runtimePatches=[patch], trainer={"image": "me:1", "numNodes": 2})
    rendered = render_trainjob(trainjob, make_runtime(make_job(command=["serve"])))
    job = "spec.replicatedJobs[name=node].template.spec"
    node = f"{job}.template.spec.containers[name=node]"
    wanted = {
        "kind": "plugin JobSet",
        "metadata.name": "TrainJob",
        "metadata.labels.team": "patch acme.io/ops",
        "spec.suspend": "TrainJob",
        f"{job}.parallelism": "TrainJob",
        f"{job}.template.spec.nodeSelector.zone": "patch acme.io/ops",
        f"{node}.image": "TrainJob",
        f"{node}.command[0]": "runtime",
        f"{node}.env[name=PET_NNODES].value": "plugin Torch",
    }
    assert {path: rendered.origins.get(path) for path in wanted} == wanted
    assert rendered.jobset["spec"]["suspend"] is False


def test_nodes_of_the_policy_come_from_the_runtime() -> None:
    rendered = render_trainjob(make_trainjob(), make_runtime(ml_policy={"numNodes": 4}))
    path = "spec.replicatedJobs[name=node].template.spec.parallelism"
    assert rendered.origins[path] == "runtime"


def test_every_pod_is_told_the_folder_that_its_job_was_submitted_from() -> None:
    told = {"trainwright.dev/working-dir": "/home/ada/project"}
    trainjob = make_trainjob(trainer={"numNodes": 2})
    trainjob["metadata"]["annotations"] = {**told, "acme.io/other": "stays on the TrainJob"}
    runtime = make_runtime(make_job("dataset-initializer", "dataset-initializer"), make_job())

    def read_annotations(jobset: Object) -> list[Object]:
        return [
            job["template"]["spec"]["template"].get("metadata", {}).get("annotations", {})
            for job in jobset["spec"]["replicatedJobs"]
        ]

    assert read_annotations(render_trainjob(trainjob, runtime).jobset) == [told, told]
    assert read_annotations(render_trainjob(make_trainjob(), runtime).jobset) == [{}, {}]
