from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.component.server.registries import (
    eventually,
    make_config_map,
    make_pod,
    make_trainjob,
    open_registry,
)
from trainwright.api import kinds
from trainwright.base.errors import Conflict, Forbidden, Invalid, NotFound
from trainwright.base.objects import is_deleting
from trainwright.machinery.api import DeleteOptions, PatchType
from trainwright.server.inprocess import InProcessApi
from trainwright.server.requests import ListOptions, WriteOptions

if TYPE_CHECKING:
    from pathlib import Path

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object
    from trainwright.server.registry import Registry


async def create(api: InProcessApi, obj: Object) -> Object:
    kind = kinds.find_kind(obj["apiVersion"], obj["kind"])
    assert kind is not None
    return await api.create(kind, obj, field_manager="tester")


def held(obj: Object, *finalizers: str) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "finalizers": list(finalizers)}}


async def test_finalizers_hold_an_object_until_the_last_is_gone(
    registry: Registry, api: InProcessApi
) -> None:
    await create(api, held(make_trainjob(), "a.b/one", "a.b/two"))
    first = await api.delete(kinds.TRAINJOB, "default", "t")
    assert first["metadata"]["deletionTimestamp"]
    assert first["metadata"]["deletionGracePeriodSeconds"] == 0
    assert first["metadata"]["generation"] == 2
    assert await api.delete(kinds.TRAINJOB, "default", "t") == first

    async def finalizers(*left: str) -> Object:
        patch = {"metadata": {"finalizers": list(left)}}
        return await api.patch(
            kinds.TRAINJOB, "default", "t", patch, type=PatchType.MERGE, field_manager="m"
        )

    with pytest.raises(Invalid, match="no new finalizers can be added"):
        await finalizers("a.b/one", "a.b/two", "a.b/three")
    left = await finalizers("a.b/two")
    assert left["metadata"]["finalizers"] == ["a.b/two"]
    await finalizers()
    with pytest.raises(NotFound):
        registry.get(kinds.TRAINJOB, "default", "t")


async def test_preconditions_protect_another_object(api: InProcessApi) -> None:
    made = await create(api, make_config_map("a"))
    with pytest.raises(Conflict, match="UID in the precondition"):
        await api.delete(kinds.CONFIG_MAP, "default", "a", DeleteOptions(uid="other"))
    with pytest.raises(Conflict, match="ResourceVersion in the precondition"):
        await api.delete(kinds.CONFIG_MAP, "default", "a", DeleteOptions(resource_version="1"))
    good = DeleteOptions(
        uid=made["metadata"]["uid"], resource_version=made["metadata"]["resourceVersion"]
    )
    await api.delete(kinds.CONFIG_MAP, "default", "a", good)


@pytest.mark.parametrize(
    ("propagation", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")]
)
async def test_propagation_policies_leave_their_finalizer(
    api: InProcessApi, propagation: str, finalizer: str
) -> None:
    await create(api, make_trainjob())
    options = DeleteOptions(propagation=propagation)
    gone = await api.delete(kinds.TRAINJOB, "default", "t", options)
    assert gone["metadata"]["finalizers"] == [finalizer]


async def test_jobs_orphan_their_pods_unless_told_otherwise(registry: Registry) -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"}}
    for name in ("kept", "gone"):
        job = {"metadata": {"name": name}, "spec": {"template": template}}
        await registry.create(kinds.JOB, "default", job, WriteOptions())
    kept = await registry.delete(kinds.JOB, "default", "kept", DeleteOptions(), WriteOptions())
    assert not kept.removed
    assert "child pods are preserved by default" in kept.warnings[0]
    background = DeleteOptions(propagation="Background")
    gone = await registry.delete(kinds.JOB, "default", "gone", background, WriteOptions())
    assert (gone.removed, list(gone.warnings)) == (True, [])


async def test_pods_on_a_node_get_their_grace(registry: Registry, api: InProcessApi) -> None:
    await create(api, make_pod("waiting"))
    await api.delete(kinds.POD, "default", "waiting")
    assert registry.count(kinds.POD) == 0

    await create(api, make_pod(nodeName="laptop", terminationGracePeriodSeconds=20))
    marked = await api.delete(kinds.POD, "default", "p")
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 20
    shorter = await api.delete(kinds.POD, "default", "p", DeleteOptions(grace_period_s=5))
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 5
    assert shorter["metadata"]["deletionTimestamp"] < marked["metadata"]["deletionTimestamp"]
    await api.delete(kinds.POD, "default", "p", DeleteOptions(grace_period_s=60))
    status = {"status": {"phase": "Running"}}
    await api.patch(
        kinds.POD,
        "default",
        "p",
        status,
        type=PatchType.MERGE,
        subresource="status",
        field_manager="node",
    )
    assert registry.count(kinds.POD) == 1
    await api.delete(kinds.POD, "default", "p", DeleteOptions(grace_period_s=0))
    assert registry.count(kinds.POD) == 0


async def test_namespaces_end_by_finalize(registry: Registry, api: InProcessApi) -> None:
    made = await create(api, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    assert (made["spec"], made["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})
    marked = await api.delete(kinds.NAMESPACE, "", "n")
    assert marked["status"]["phase"] == "Terminating"
    with pytest.raises(Forbidden) as refused:
        await create(api, make_config_map("a", namespace="n"))
    assert refused.value.details["causes"][0]["reason"] == "NamespaceTerminating"
    marked["spec"]["finalizers"] = []
    await api.replace(kinds.NAMESPACE, marked, subresource="finalize", field_manager="m")
    with pytest.raises(NotFound):
        registry.get(kinds.NAMESPACE, "", "n")


async def test_delete_collection_honours_selectors(registry: Registry, api: InProcessApi) -> None:
    for name, color in (("a", "red"), ("b", "blue"), ("c", "red")):
        obj = make_config_map(name)
        obj["metadata"]["labels"] = {"color": color}
        await create(api, obj)
    written = await registry.delete_collection(
        kinds.CONFIG_MAP,
        "default",
        ListOptions(label_selector="color=red"),
        DeleteOptions(),
        WriteOptions(),
    )
    assert [one.stored.name for one in written] == ["a", "c"]
    page = registry.list(kinds.CONFIG_MAP, "default", ListOptions())
    assert [stored.name for stored in page.items] == ["b"]


WIDGETS: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "widgets", "kind": "Widget", "singular": "widget", "shortNames": ["w"]},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer", "default": 3}},
                            }
                        },
                    }
                },
            }
        ],
    },
}


async def test_crd_brings_and_takes_its_kind(registry: Registry, api: InProcessApi) -> None:
    changes: list[int] = []
    registry.on_kinds_changed(lambda: changes.append(1))
    crd = await create(api, WIDGETS)
    assert {c["type"]: c["status"] for c in crd["status"]["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    served = registry.find_served("example.com", "v1", "widgets")
    assert served is not None
    assert changes
    kind: Kind = served.kind
    widget = {"metadata": {"name": "w", "namespace": "default"}, "spec": {}}
    made = await api.create(kind, widget, field_manager="m")
    assert made["spec"] == {"size": 3}

    await api.delete(kinds.CUSTOM_RESOURCE_DEFINITION, "", "widgets.example.com")
    await eventually(lambda: registry.find_served("example.com", "v1", "widgets") is None)
    with pytest.raises(NotFound):
        registry.get(kind, "default", "w")
    assert registry.count(kind) == 0


async def test_objects_of_a_crd_are_there_after_a_restart(tmp_path: Path) -> None:
    first = await open_registry(tmp_path / "data")
    await create(InProcessApi(first), WIDGETS)
    served = first.find_served("example.com", "v1", "widgets")
    assert served is not None
    widget = {"metadata": {"name": "w", "finalizers": ["a.b/c"]}, "spec": {"size": 4}}
    await first.create(served.kind, "default", widget, WriteOptions())
    await InProcessApi(first).delete(kinds.CUSTOM_RESOURCE_DEFINITION, "", "widgets.example.com")
    await first.close()

    second = await open_registry(tmp_path / "data")
    try:
        api = InProcessApi(second)
        assert (await api.get(served.kind, "default", "w"))["spec"] == {"size": 4}
        await eventually(lambda: is_deleting(second.get(served.kind, "default", "w").decode()))
        release = {"metadata": {"finalizers": None}}
        await api.patch(
            served.kind, "default", "w", release, type=PatchType.MERGE, field_manager="m"
        )
        await eventually(lambda: second.find_served("example.com", "v1", "widgets") is None)
    finally:
        await second.close()
