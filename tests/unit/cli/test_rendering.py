"""`render` for people: the JobSet as YAML, with the origin of each value behind it."""

from __future__ import annotations

from typing import Any

import yaml

from trainwright.cli.checking import render_job

JOB: dict[str, Any] = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {"name": "job"},
    "spec": {
        "runtimeRef": {"name": "torch-distributed"},
        "trainer": {"numNodes": 2, "command": ["sh", "-c", "echo 'a: b'\nexit"], "args": ["#"]},
    },
}


def test_the_lines_are_the_jobset_as_yaml() -> None:
    rendered = render_job([JOB], whole=True)
    assert yaml.safe_load("\n".join(rendered.lines)) == rendered.jobset


def test_each_value_has_its_origin() -> None:
    lines = render_job([JOB]).lines
    (image,) = [line for line in lines if line.strip().startswith("image:")]
    (nodes,) = [line for line in lines if line.strip().startswith("parallelism:")]
    assert image.endswith("# runtime")
    assert nodes.endswith("# TrainJob")
    assert any(line.endswith("# plugin Torch") for line in lines)


def test_long_values_are_cut() -> None:
    long = JOB | {"spec": JOB["spec"] | {"trainer": {"command": ["x" * 500]}}}
    assert max(len(line.partition("  #")[0]) for line in render_job([long]).lines) < 100
    assert "x" * 500 in "\n".join(render_job([long], whole=True).lines)
