from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.job.factories import make_job
from trainwright.core.job.indexes import parse_indexes, render_indexes
from trainwright.core.job.memory import JobMemory
from trainwright.core.job.pods import build_pod


def test_indexed_pod_knows_its_index() -> None:
    job = make_job(
        template={
            "metadata": {"labels": {"a": "b"}, "finalizers": ["x/y"]},
            "spec": {
                "initContainers": [{"name": "i", "env": [{"name": "JOB_COMPLETION_INDEX"}]}],
                "containers": [{"name": "c", "env": [{"name": "E", "value": "1"}]}],
            },
        }
    )
    pod = build_pod(job, name="j-3-abcde", index=3, failures=0, ignored=0)
    key = "batch.kubernetes.io/job-completion-index"
    assert pod["metadata"] == {
        "name": "j-3-abcde",
        "generateName": "j-3-",
        "namespace": "team",
        "labels": {"a": "b", key: "3"},
        "annotations": {key: "3"},
        "finalizers": ["x/y", "batch.kubernetes.io/job-tracking"],
        "ownerReferences": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": "j",
                "uid": "ju",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    assert pod["spec"]["hostname"] == "j-3"
    assert pod["spec"]["initContainers"][0]["env"] == [{"name": "JOB_COMPLETION_INDEX"}]
    assert pod["spec"]["containers"][0]["env"] == [
        {"name": "E", "value": "1"},
        {
            "name": "JOB_COMPLETION_INDEX",
            "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{key}']"}},
        },
    ]


def test_pod_without_index_has_no_hostname() -> None:
    pod = build_pod(make_job(), name="j-abcde", index=-1, failures=0, ignored=0)
    assert "hostname" not in pod["spec"]
    assert "labels" not in pod["metadata"]


def test_long_prefix_is_cut_to_a_label() -> None:
    name = JobMemory(lambda: "zzzzz").choose_name("x" * 70 + "-", 0, frozenset())
    assert name == "x" * 58 + "zzzzz"


@pytest.mark.parametrize(
    ("indexes", "text"),
    [(set(), ""), ({1, 3, 4, 5, 7}, "1,3-5,7"), ({0, 1}, "0,1"), (set(range(4)), "0-3")],
)
def test_indexes_are_written_in_runs(indexes: set[int], text: str) -> None:
    assert render_indexes(indexes) == text


@settings(deadline=None, max_examples=50, derandomize=True)
@given(st.sets(st.integers(0, 40)))
def test_indexes_survive_being_written(indexes: set[int]) -> None:
    assert parse_indexes(render_indexes(indexes)) == indexes
