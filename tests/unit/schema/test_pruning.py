from __future__ import annotations

import copy
from typing import Any

from trainwright.schema.pruning import prune

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "properties": {
                "trainer": {"type": "object", "properties": {"numNodes": {"type": "integer"}}},
                "jobs": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"name": {"type": "string"}}},
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "mixed": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"a": {"type": "object", "properties": {}}},
                },
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "jobsByName": {
                    "type": "object",
                    "additionalProperties": {"type": "object", "properties": {"x": {}}},
                },
                "pod": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {}},
            },
        },
    },
}


def test_prune_names_each_dropped_path_and_keeps_its_input() -> None:
    obj = {
        "kind": "A",
        "extra": 1,
        "metadata": {"name": "a", "nmae": "b"},
        "spec": {
            "trainer": {"numNodez": 2, "numNodes": 1},
            "jobs": [{"name": "a"}, {"name": "b", "bad": {"c": 1}}],
            "free": {"any": {"thing": 1}},
            "mixed": {"a": {"b": 1}, "c": {"d": 1}},
            "labels": {"a": "b"},
            "jobsByName": {"j": {"x": 1, "y": 2}},
            "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}},
        },
    }
    before = copy.deepcopy(obj)
    pruned, dropped = prune(SCHEMA, obj)
    assert dropped == (
        "extra",
        "metadata.nmae",
        "spec.trainer.numNodez",
        "spec.jobs[1].bad",
        "spec.mixed.a.b",
        "spec.jobsByName.j.y",
        "spec.pod.spec",
    )
    assert pruned["spec"]["mixed"] == {"a": {}, "c": {"d": 1}}
    assert pruned["spec"]["jobs"] == [{"name": "a"}, {"name": "b"}]
    assert obj == before
    assert prune(SCHEMA, pruned) == (pruned, ())


def test_prune_shares_what_loses_nothing() -> None:
    obj = {"spec": {"trainer": {"numNodes": 1}, "jobs": [{"name": "a"}]}}
    pruned, dropped = prune(SCHEMA, obj)
    assert pruned is obj
    assert dropped == ()
