"""Runtimes of older Trainers."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from trainwright.core.conversion.runtime import convert_runtime


def make_runtime(torch: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "torch"},
        "spec": {"mlPolicy": {"numNodes": 2, "torch": torch}, "template": {"spec": {}}},
    }


@pytest.mark.parametrize(
    ("torch", "words"),
    [
        ({"numProcPerNode": "auto"}, []),
        ({"numProcPerNode": 4}, ["set spec.trainer.numProcPerNode to 4"]),
        ({"numProcPerNode": "cpu"}, ["chosen from the resources"]),
        (
            {"elasticPolicy": {"minNodes": 1, "maxNodes": 3}},
            ["the number of nodes"],
        ),
        (
            {"numProcPerNode": "gpu", "elasticPolicy": {"maxRestarts": 3}},
            ["chosen from the resources", "the number of nodes"],
        ),
    ],
    ids=["auto", "a number", "cpu", "elastic policy", "both"],
)
def test_old_torch_field_is_dropped_and_said(torch: dict[str, Any], words: list[str]) -> None:
    kept: dict[str, Any] = {"envInjection": {"targets": []}}
    sent = make_runtime({**torch, **kept})
    before = copy.deepcopy(sent)
    converted, warnings = convert_runtime(sent)
    assert converted == make_runtime(kept)
    assert sent == before
    assert len(warnings) == len(words)
    assert all(word in warning for word, warning in zip(words, warnings, strict=True))


@pytest.mark.parametrize(
    "runtime",
    [make_runtime({}), {"spec": {"mlPolicy": {"mpi": {"numProcPerNode": 2}}}}, {"spec": {}}, {}],
    ids=["torch of today", "mpi", "no policy", "no spec"],
)
def test_runtime_of_today_is_handed_back_as_it_is(runtime: dict[str, Any]) -> None:
    converted, warnings = convert_runtime(runtime)
    assert converted is runtime
    assert warnings == []
