from __future__ import annotations

from typing import Any

import pytest

from trainwright.api.kinds import JOB, POD
from trainwright.core.lifecycle.collection import (
    Dependent,
    ObservedObject,
    OwnerState,
    find_owner_state,
    plan_collection,
)
from trainwright.core.plan import Delete, Patch

STAMP = "2026-01-02T03:04:05Z"
PRESENT, ABSENT, WAITING = OwnerState.PRESENT, OwnerState.ABSENT, OwnerState.WAITING


def make(
    name: str = "x", *, owners: tuple[str, ...] = (), blocks: bool = True, **metadata: Any
) -> dict[str, Any]:
    references = [{"uid": uid, "name": uid, "blockOwnerDeletion": blocks} for uid in owners]
    return {
        "metadata": {
            "name": name,
            "namespace": "n",
            "uid": f"uid-{name}",
            "resourceVersion": "4",
            "ownerReferences": references,
            **metadata,
        }
    }


def observe(obj: dict[str, Any], *owners: OwnerState, dependents: Any = ()) -> ObservedObject:
    return ObservedObject(
        kind=JOB,
        obj=obj,
        owners=owners,
        dependents=[Dependent(kind=POD, obj=dependent) for dependent in dependents],
    )


def delete(propagation: Any) -> tuple[Delete, ...]:
    gone = Delete(
        kind=JOB,
        namespace="n",
        name="x",
        uid="uid-x",
        resource_version="4",
        propagation=propagation,
    )
    return (gone,)


def patch(obj: str, kind: Any, **metadata: Any) -> Patch:
    return Patch(
        kind=kind, namespace="n", name=obj, patch={"metadata": metadata}, resource_version="4"
    )


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ((), ()),
        ((PRESENT,), ()),
        ((ABSENT,), delete("Background")),
        ((ABSENT, ABSENT), delete("Background")),
        ((WAITING,), delete("Background")),
        (
            (PRESENT, ABSENT),
            (
                patch(
                    "x",
                    JOB,
                    ownerReferences=[{"uid": "o0", "name": "o0", "blockOwnerDeletion": True}],
                ),
            ),
        ),
    ],
)
def test_dependent_goes_when_all_its_owners_are_gone(
    states: tuple[OwnerState, ...], expected: Any
) -> None:
    obj = make(owners=tuple(f"o{i}" for i in range(len(states))))
    assert plan_collection(observe(obj, *states)).actions == expected


def test_own_policy_finalizer_and_own_dependents_decide_the_propagation() -> None:
    orphaning = make(owners=("o",), finalizers=["orphan"])
    assert plan_collection(observe(orphaning, ABSENT)).actions == delete("Orphan")
    child = make("child", owners=("uid-x",))
    waited = observe(make(owners=("o",)), WAITING, dependents=[child])
    assert plan_collection(waited).actions == delete("Foreground")


def test_foreground_waits_for_blocking_dependents_only() -> None:
    owner = make(deletionTimestamp=STAMP, finalizers=["foregroundDeletion", "mine/x"])
    blocking = make("c", owners=("uid-x",))
    free = make("c", owners=("uid-x",), blocks=False)
    assert plan_collection(observe(owner, dependents=[blocking])).actions == ()
    assert plan_collection(observe(owner, dependents=[free])).actions == (
        patch("x", JOB, finalizers=["mine/x"]),
    )


def test_orphan_detaches_dependents_before_the_owner_goes() -> None:
    owner = make(deletionTimestamp=STAMP, finalizers=["orphan"])
    child = make("c", owners=("uid-x",))
    assert plan_collection(observe(owner, dependents=[child])).actions == (
        patch("c", POD, ownerReferences=None),
        patch("x", JOB, finalizers=None),
    )


def test_object_that_is_going_already_is_left_alone() -> None:
    obj = make(owners=("o",), deletionTimestamp=STAMP, finalizers=["mine/x"])
    assert plan_collection(observe(obj, ABSENT)).actions == ()


def test_same_name_with_another_uid_is_absent() -> None:
    owner = make(deletionTimestamp=STAMP, finalizers=["foregroundDeletion"])
    assert find_owner_state(owner, "uid-x") is WAITING
    assert find_owner_state(owner, "older") is ABSENT
    assert find_owner_state(make(), "uid-x") is PRESENT
    assert find_owner_state(None, "uid-x") is ABSENT
