from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.base.errors import Conflict
from trainwright.merge.fieldset import FieldSet
from trainwright.merge.shape import DuplicateElement, KeyMissing
from trainwright.merge.structured import (
    MAX_UPDATE_MANAGERS,
    ApplyConflict,
    ApplyResult,
    apply_config,
    field_set_of,
    track_update,
)

T1, T2, T3 = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z", "2026-01-01T00:00:03Z"
TEXT = {"type": "string"}
TEXTS = {"type": "object", "additionalProperties": TEXT}


def keyed(*keys: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
        "items": {"type": "object", "properties": properties},
    }


FIELD_REF = {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"fieldPath": TEXT}}
CONTAINERS = keyed(
    "name",
    name=TEXT,
    image=TEXT,
    args={"type": "array", "items": TEXT},
    env=keyed("name", name=TEXT, value=TEXT, valueFrom={"properties": {"fieldRef": FIELD_REF}}),
    ports=keyed(
        "containerPort",
        "protocol",
        containerPort={"type": "integer"},
        protocol={"type": "string", "default": "TCP"},
    ),
)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "apiVersion": TEXT,
        "kind": TEXT,
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer"},
                "suspend": {"type": "boolean"},
                "containers": CONTAINERS,
                "template": {
                    "type": "object",
                    "properties": {"metadata": {"type": "object", "properties": {"labels": TEXTS}}},
                },
                "topics": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "data": TEXTS,
    },
}


def obj(spec: Any = None, **metadata: Any) -> dict[str, Any]:
    made = {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x", **metadata}}
    return made if spec is None else {**made, "spec": spec}


def apply(
    live: Any,
    config: Any,
    managed: Any = (),
    manager: str = "a",
    *,
    force: bool = False,
    now: str = T1,
) -> ApplyResult:
    inputs = (live, config, list(managed))
    before = copy.deepcopy(inputs)
    result = apply_config(
        live=live,
        config=config,
        managed=inputs[2],
        manager=manager,
        force=force,
        schema=SCHEMA,
        api_version="v1",
        now=now,
    )
    assert inputs == before
    return result


def update(
    before: Any, after: Any, managed: Any = (), manager: str = "u", *, now: str = T1, **more: str
) -> Any:
    return track_update(
        before=before,
        after=after,
        managed=list(managed),
        manager=manager,
        schema=SCHEMA,
        api_version="v1",
        now=now,
        **more,  # type: ignore[arg-type]  # only subresource
    )


def fields(managed: Any, manager: str) -> Any:
    return next((e["fieldsV1"] for e in managed if e["manager"] == manager), None)


def containers(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


def test_field_set_of_an_applied_object_is_what_the_api_server_recorded() -> None:
    owner = {"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": "1", "controller": True}
    container = {
        "name": "node",
        "args": ["a"],
        "env": [
            {"name": "LR", "value": "1"},
            {"name": "RANK", "valueFrom": {"fieldRef": {"fieldPath": "p"}}},
        ],
        "ports": [{"containerPort": 29500}],
    }
    config = obj(
        {
            "containers": [container],
            "suspend": False,
            "template": {"metadata": {"labels": {"step": "t"}}},
        },
        labels={"team": "x"},
        ownerReferences=[owner],
        namespace="ns",
        uid="7",
    )
    assert field_set_of(config, SCHEMA).to_fields_v1() == {
        "f:metadata": {
            "f:labels": {"f:team": {}},
            "f:ownerReferences": {'k:{"uid":"1"}': {}},
        },
        "f:spec": {
            "f:containers": {
                'k:{"name":"node"}': {
                    ".": {},
                    "f:args": {},
                    "f:env": {
                        'k:{"name":"LR"}': {".": {}, "f:name": {}, "f:value": {}},
                        'k:{"name":"RANK"}': {
                            ".": {},
                            "f:name": {},
                            "f:valueFrom": {"f:fieldRef": {}},
                        },
                    },
                    "f:name": {},
                    "f:ports": {
                        'k:{"containerPort":29500,"protocol":"TCP"}': {
                            ".": {},
                            "f:containerPort": {},
                        }
                    },
                }
            },
            "f:suspend": {},
            "f:template": {"f:metadata": {"f:labels": {"f:step": {}}}},
        },
    }


def test_field_set_deduces_what_no_schema_describes() -> None:
    found = field_set_of(obj({"free": {"m": {"x": [1]}, "e": {}}, "topics": ["t"]}), SCHEMA)
    assert found.to_fields_v1()["f:spec"] == {
        "f:free": {"f:e": {}, "f:m": {".": {}, "f:x": {}}},
        "f:topics": {'v:"t"': {}},
    }


def test_malformed_keyed_lists_are_refused_with_their_path() -> None:
    with pytest.raises(DuplicateElement) as duplicate:
        apply(None, obj({"containers": containers("a", "a")}))
    assert duplicate.value.path == '.spec.containers[name="a"]'
    ports = [{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}]
    with pytest.raises(DuplicateElement):
        apply(None, obj({"containers": [{"name": "a", "ports": ports}]}))
    with pytest.raises(KeyMissing) as missing:
        apply(None, obj({"containers": [{"image": "i"}]}))
    assert missing.value.path == ".spec.containers"


def test_creation_by_apply_owns_what_is_applied() -> None:
    config = obj({"replicas": 1}, creationTimestamp=None)
    result = apply(None, config)
    assert result.changed
    assert result.obj == obj({"replicas": 1})
    assert result.managed_fields == [
        {
            "manager": "a",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": T1,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:replicas": {}}},
        }
    ]


def test_applying_the_same_again_returns_the_very_inputs() -> None:
    first = apply(None, obj({"replicas": 1, "containers": containers("a")}))
    live = {**first.obj, "status": {"ready": 1}}
    managed = first.managed_fields
    again = apply_config(
        live=live,
        config=first.obj,
        managed=managed,
        manager="a",
        force=False,
        schema=SCHEMA,
        api_version="v1",
        now=T2,
    )
    assert not again.changed
    assert again.obj is live
    assert again.managed_fields is managed


def test_field_no_longer_applied_is_removed_unless_somebody_else_owns_it() -> None:
    first = apply(None, obj({"replicas": 1, "suspend": True}))
    second = apply(first.obj, obj({"suspend": True}), first.managed_fields, "b", now=T2)
    third = apply(second.obj, obj(), second.managed_fields, "a", now=T3)
    assert third.obj == obj({"suspend": True})
    assert fields(third.managed_fields, "a") is None
    assert fields(third.managed_fields, "b") == {"f:spec": {"f:suspend": {}}}


def test_removed_element_takes_its_unowned_defaults_along() -> None:
    first = apply(None, obj({"containers": [{"name": "a", "image": "i"}, {"name": "b"}]}))
    live = copy.deepcopy(first.obj)
    live["spec"]["containers"][0]["pullPolicy"] = "Always"
    live["spec"]["replicas"] = 1
    second = apply(live, obj({"containers": containers("b")}), first.managed_fields)
    assert second.obj == obj({"containers": containers("b"), "replicas": 1})


def test_removed_last_label_leaves_no_null() -> None:
    first = apply(None, obj({"template": {"metadata": {"labels": {"q": "1"}}}, "replicas": 1}))
    emptied = apply(
        first.obj, obj({"template": {"metadata": {}}, "replicas": 1}), first.managed_fields
    )
    assert emptied.obj == obj({"template": {"metadata": {}}, "replicas": 1})
    left_out = apply(first.obj, obj({"replicas": 1}), first.managed_fields)
    assert left_out.obj == obj({"replicas": 1})


def test_label_of_another_manager_survives_the_removal_of_ours() -> None:
    first = apply(None, obj({"template": {"metadata": {"labels": {"a": "1"}}}}))
    after = obj({"template": {"metadata": {"labels": {"a": "1", "b": "2"}}}})
    managed = update(first.obj, after, first.managed_fields)
    second = apply(after, obj(), managed)
    assert second.obj == obj({"template": {"metadata": {"labels": {"b": "2"}}}})


def test_conflict_names_manager_and_field_as_kubernetes_does() -> None:
    first = apply(None, obj({"replicas": 1, "containers": [{"name": "c", "image": "i"}]}))
    with pytest.raises(ApplyConflict) as one:
        apply(first.obj, obj({"replicas": 2}), first.managed_fields, "b")
    assert isinstance(one.value, Conflict)
    assert one.value.message == 'Apply failed with 1 conflict: conflict with "a": .spec.replicas'
    cause = {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "a"',
        "field": ".spec.replicas",
    }
    assert one.value.details == {"causes": [cause]}
    managed = update(first.obj, obj({**first.obj["spec"], "suspend": True}), first.managed_fields)
    live = obj({**first.obj["spec"], "suspend": True})
    changes = {"replicas": 2, "suspend": False, "containers": [{"name": "c", "image": "j"}]}
    with pytest.raises(ApplyConflict) as several:
        apply(live, obj(changes), managed, "b")
    assert several.value.message == (
        'Apply failed with 3 conflicts: conflicts with "a":\n'
        '- .spec.containers[name="c"].image\n- .spec.replicas\n'
        'conflicts with "u" using v1:\n- .spec.suspend'
    )


def test_equal_value_is_shared_and_force_takes_over() -> None:
    first = apply(None, obj({"replicas": 1, "suspend": True}))
    shared = apply(first.obj, obj({"replicas": 1}), first.managed_fields, "b", now=T2)
    assert shared.obj is first.obj
    assert fields(shared.managed_fields, "a") == fields(first.managed_fields, "a")
    forced = apply(shared.obj, obj({"replicas": 3}), shared.managed_fields, "c", force=True, now=T3)
    assert forced.obj["spec"] == {"replicas": 3, "suspend": True}
    assert fields(forced.managed_fields, "a") == {"f:spec": {"f:suspend": {}}}
    assert fields(forced.managed_fields, "b") is None
    assert [(e["manager"], e["time"]) for e in forced.managed_fields] == [("a", T1), ("c", T3)]


def test_first_apply_to_an_untracked_object_conflicts_with_what_was_there() -> None:
    live = obj({"replicas": 1, "suspend": True}, uid="1")
    with pytest.raises(ApplyConflict, match='"before-first-apply" using v1'):
        apply(live, obj({"replicas": 2}))
    forced = apply(live, obj({"replicas": 2}), force=True)
    left = fields(forced.managed_fields, "before-first-apply")
    assert left == {"f:spec": {".": {}, "f:suspend": {}}}


def test_kubectl_takes_over_what_its_client_side_apply_set() -> None:
    said = json.dumps(obj({"replicas": 1}))
    live = obj(
        {"replicas": 1}, annotations={"kubectl.kubernetes.io/last-applied-configuration": said}
    )
    managed = update(None, live, manager="kubectl-client-side-apply")
    assert apply(live, obj({"replicas": 2}), managed, "kubectl").obj["spec"] == {"replicas": 2}
    with pytest.raises(ApplyConflict):
        apply(live, obj({"replicas": 2}), managed, "other")


@pytest.mark.parametrize(
    ("live", "applied", "order"),
    [
        (["a", "b"], ["b", "a"], ["b", "a"]),
        (["a", "x", "b"], ["b", "a"], ["x", "b", "a"]),
        (["x", "a", "y"], ["n", "a"], ["x", "n", "a", "y"]),
        (["x"], ["n"], ["x", "n"]),
        (["a", "x"], ["a", "n"], ["a", "x", "n"]),
    ],
)
def test_applied_elements_stand_in_their_order_among_the_others(
    live: list[str], applied: list[str], order: list[str]
) -> None:
    result = apply(
        obj({"containers": containers(*live), "topics": live}),
        obj({"containers": containers(*applied), "topics": applied}),
    )
    assert [c["name"] for c in result.obj["spec"]["containers"]] == order
    assert result.obj["spec"]["topics"] == order


def test_null_is_applied_as_a_value_but_empties_no_map() -> None:
    live = obj({"replicas": 1, "free": {"x": 1}})
    result = apply(live, obj({"replicas": None, "free": None}), force=True)
    assert result.obj["spec"] == {"replicas": None, "free": {"x": 1}}
    assert fields(result.managed_fields, "a") == {"f:spec": {"f:free": {}, "f:replicas": {}}}


def test_create_by_update_owns_everything_with_its_parents() -> None:
    managed = update(None, {**obj({"replicas": 1}, labels={"l": "1"}), "data": {"k": "v"}})
    assert fields(managed, "u") == {
        "f:data": {".": {}, "f:k": {}},
        "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
        "f:spec": {".": {}, "f:replicas": {}},
    }


def test_update_takes_what_it_changes_and_frees_what_it_removes() -> None:
    first = apply(None, obj({"replicas": 1, "suspend": True, "topics": ["t"]}))
    after = obj({"replicas": 2, "topics": ["t"], "free": {"x": 1}})
    managed = update(first.obj, after, first.managed_fields, now=T2)
    assert fields(managed, "a") == {"f:spec": {"f:topics": {'v:"t"': {}}}}
    assert fields(managed, "u") == {
        "f:spec": {"f:free": {".": {}, "f:x": {}}, "f:replicas": {}},
    }
    assert [(e["operation"], e["time"]) for e in managed] == [("Apply", T1), ("Update", T2)]
    gone = update(after, obj({"topics": ["t"]}), managed, "v", now=T3)
    assert [e["manager"] for e in gone] == ["a"]


def test_update_without_change_keeps_entries_and_times() -> None:
    first = apply(None, obj({"replicas": 1}))
    touched = obj({"replicas": 1}, resourceVersion="9", generation=2)
    assert update(first.obj, touched, first.managed_fields, now=T2) == first.managed_fields


def test_entries_are_kept_apart_by_subresource() -> None:
    live = obj({"replicas": 1})
    managed = update(None, live)
    managed = update(live, {**live, "status": {"n": 1}}, managed, now=T2, subresource="status")
    assert [(e["manager"], e.get("subresource")) for e in managed] == [("u", None), ("u", "status")]


@pytest.mark.parametrize("sent", [[], [{}]])
def test_client_can_clear_managed_fields_except_through_a_subresource(sent: Any) -> None:
    live = obj({"replicas": 1})
    managed = update(None, live)
    after = obj({"replicas": 2}, managedFields=sent)
    assert update(live, after, managed) == []
    assert update(live, after, managed, subresource="status") != []
    assert update(live, obj({"replicas": 2}), []) == []


def test_client_can_edit_managed_fields_but_not_with_nonsense() -> None:
    live = obj({"replicas": 1, "suspend": True})
    managed = update(None, live)
    mine = {**managed[0], "manager": "me"}
    after = obj(live["spec"], managedFields=[mine])
    assert update(live, after, managed) == [mine]
    broken = obj(live["spec"], managedFields=[{"manager": "me"}])
    assert update(live, broken, managed) == managed


def test_oldest_updaters_are_folded_together() -> None:
    spec: dict[str, Any] = {"free": {}}
    live = obj(spec)
    managed = update(None, live, manager="m00", now="2026-01-01T00:01:00Z")
    for number in range(1, MAX_UPDATE_MANAGERS + 3):
        after = obj({"free": {**live["spec"]["free"], f"k{number}": 1}})
        time = f"2026-01-01T00:01:{number:02}Z"
        managed = update(live, after, managed, f"m{number:02}", now=time)
        live = after
    assert len(managed) == MAX_UPDATE_MANAGERS
    assert managed[0]["manager"] == "ancient-changes"
    owned = FieldSet()
    for entry in managed:
        owned = owned.union(FieldSet.from_fields_v1(entry["fieldsV1"]))
    assert all(
        owned.has(("f:spec", "f:free", f"f:k{n}")) for n in range(1, MAX_UPDATE_MANAGERS + 3)
    )


NAMES = st.sampled_from("abc")
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(0, 2),
        "topics": st.lists(NAMES, unique=True, min_size=1, max_size=3),
        "free": st.dictionaries(
            NAMES, st.dictionaries(NAMES, st.integers(0, 1), max_size=2), max_size=2
        ),
        "containers": st.lists(
            st.fixed_dictionaries(
                {"name": NAMES},
                optional={"image": NAMES, "args": st.lists(NAMES, max_size=2)},
            ),
            min_size=1,
            max_size=3,
            unique_by=lambda c: c["name"],
        ),
    },
)


def holds(stored: Any, applied: Any) -> bool:
    if not isinstance(applied, dict):
        return bool(stored == applied)
    return all(key in stored and holds(stored[key], value) for key, value in applied.items())


@settings(deadline=None, max_examples=150, derandomize=True)
@given(SPECS, SPECS, SPECS)
def test_forced_apply_wins_and_is_idempotent(start: Any, ours: Any, next_ours: Any) -> None:
    live = obj(start)
    result = apply(live, obj(ours), update(None, live), force=True, now=T2)
    for spec in (ours, next_ours):
        result = apply(result.obj, obj(spec), result.managed_fields, force=True, now=T2)
        again = apply(result.obj, obj(spec), result.managed_fields, now=T3)
        assert again.obj is result.obj
        assert not again.changed
        assert holds(result.obj["spec"].get("free", {}), spec.get("free", {}))
        stored = result.obj["spec"]
        assert stored.get("replicas") == spec.get("replicas", stored.get("replicas"))
        by_name = {c["name"]: c for c in stored.get("containers", [])}
        for container in spec.get("containers", []):
            assert container.items() <= by_name[container["name"]].items()
        wanted = spec.get("topics", [])
        assert [t for t in stored.get("topics", []) if t in wanted] == wanted


@settings(deadline=None, max_examples=150, derandomize=True)
@given(SPECS, SPECS)
def test_sole_applier_gets_exactly_what_it_applies(first: Any, second: Any) -> None:
    one = apply(None, obj(first))
    two = apply(one.obj, obj(second), one.managed_fields, now=T2)
    seen = field_set_of(two.obj, SCHEMA)
    assert seen.difference(field_set_of(obj(second), SCHEMA)).is_empty()


@settings(deadline=None, max_examples=150, derandomize=True)
@given(st.lists(SPECS, min_size=3, max_size=3))
def test_updates_from_creation_on_leave_no_field_without_owner(specs: list[Any]) -> None:
    before: Any = None
    managed: Any = []
    for manager, spec in zip("xyz", specs, strict=True):
        managed = update(before, obj(spec), managed, manager, now=T2)
        before = obj(spec)
        owned = FieldSet()
        for entry in managed:
            theirs = FieldSet.from_fields_v1(entry["fieldsV1"])
            assert owned.intersection(theirs).is_empty()
            owned = owned.union(theirs)
        alone = update(None, before)
        assert owned == FieldSet.from_fields_v1(fields(alone, "u"))


def test_numbers_and_booleans_are_never_taken_for_each_other() -> None:
    live = obj({"free": {"x": 1, "l": [1, True]}})
    managed = update(None, live)
    after = obj({"free": {"x": True, "l": [True, 1]}})
    assert fields(update(live, after, managed, "v"), "v") == {
        "f:spec": {"f:free": {"f:l": {}, "f:x": {}}}
    }
    forced = apply(live, after, managed, force=True)
    assert json.dumps(forced.obj) == json.dumps(after)


def test_who_gives_up_the_last_label_keeps_the_objects_name() -> None:
    first = apply_config(
        live=None,
        config={"metadata": {"name": "a", "labels": {"l": "1"}}, "data": {"x": "1"}},
        managed=[],
        manager="one",
        force=False,
        schema=None,
        api_version="v1",
        now="2026-01-01T00:00:00Z",
    )
    second = apply_config(
        live=first.obj,
        config={"metadata": {"name": "a"}, "data": {}},
        managed=first.managed_fields,
        manager="one",
        force=False,
        schema=None,
        api_version="v1",
        now="2026-01-01T00:00:01Z",
    )
    assert second.obj["metadata"] == {"name": "a"}
    assert not second.obj.get("data")
