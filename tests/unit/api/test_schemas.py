"""Every schema walked: what an API server asks of a structural schema holds for ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trainwright.api.kinds import CUSTOM_KINDS, KINDS, Kind
from trainwright.api.schemas.registry import metadata_schema, schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator

Schema = dict[str, Any]

KEYWORDS = {
    "type", "format", "description", "default", "enum", "pattern", "nullable", "anyOf",
    "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "minProperties",
    "properties", "additionalProperties", "items", "required",
    "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
    "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations", "x-kubernetes-group-version-kind",
    "x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key",
}  # fmt: skip


def walk(schema: Schema, path: str = "$") -> Iterator[tuple[str, Schema]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from walk(child, f"{path}.{name}")
    for word in ("items", "additionalProperties"):
        if word in schema:
            yield from walk(schema[word], f"{path}[]")


def root_of(kind: Kind) -> Schema:
    schema = schema_of(kind)
    assert schema is not None
    return schema


every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource)


@every_kind
def test_every_node_is_structural(kind: Kind) -> None:
    for path, node in walk(root_of(kind)):
        assert set(node) <= KEYWORDS, path
        if node.get("x-kubernetes-int-or-string"):
            assert "type" not in node, path
            assert node["anyOf"] == [{"type": "integer"}, {"type": "string"}], path
        else:
            assert node["type"] in {"object", "array", "string", "integer", "boolean"}, path
        assert not {"properties", "additionalProperties"} <= set(node), path
        assert set(node.get("required", ())) <= set(node.get("properties", ())), path
        assert ("items" in node) == (node.get("type") == "array"), path


@every_kind
def test_every_list_says_how_it_merges_and_has_its_keys(kind: Kind) -> None:
    for path, node in walk(root_of(kind)):
        if node.get("type") != "array":
            continue
        list_type = node["x-kubernetes-list-type"]
        assert list_type in {"atomic", "set", "map"}, path
        items = node["items"]
        for key in node.get("x-kubernetes-list-map-keys", ()):
            assert key in items["properties"], path
            assert key in items.get("required", ()) or "default" in items["properties"][key], path
        assert (list_type == "map") == ("x-kubernetes-list-map-keys" in node), path
        if list_type == "set":
            assert items["type"] in {"string", "integer"}, path
        merge_key = node.get("x-kubernetes-patch-merge-key")
        if merge_key is not None:
            assert merge_key in items["properties"], path
            assert "merge" in node["x-kubernetes-patch-strategy"].split(","), path


@every_kind
def test_root_names_its_kind_and_carries_metadata(kind: Kind) -> None:
    root = root_of(kind)
    gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    assert root["x-kubernetes-group-version-kind"] == [gvk]
    assert root["properties"]["metadata"] is metadata_schema()
    assert root["description"]
    if "status" in kind.subresources:
        assert "status" in root["properties"]


def test_schemas_are_built_once_and_share_definitions() -> None:
    pod = root_of(next(kind for kind in KINDS if kind.kind == "Pod"))
    job = root_of(next(kind for kind in KINDS if kind.kind == "Job"))
    assert (
        job["properties"]["spec"]["properties"]["template"]["properties"]["spec"]
        is (pod["properties"]["spec"])
    )
    assert all(schema_of(kind) is schema_of(kind) for kind in KINDS)
    assert schema_of(Kind("acme.io", "v1", "Thing", "things")) is None


def test_embedded_metadata_of_custom_kinds_has_five_fields() -> None:
    five = {"name", "namespace", "labels", "annotations", "finalizers"}
    seen = 0
    for kind in CUSTOM_KINDS:
        for path, node in walk(root_of(kind)):
            if path.endswith(".metadata") and path != "$.metadata":
                assert set(node["properties"]) == five, path
                seen += 1
    assert seen > 10


def find(kind_name: str, *path: str) -> Schema:
    node = root_of(next(kind for kind in KINDS if kind.kind == kind_name))
    for step in path:
        if "items" in node:
            node = node["items"]
        node = node["properties"][step]
    return node


POD = ("Pod", "spec")
CONTAINER = (*POD, "containers")
JOBSET = ("JobSet", "spec")


@pytest.mark.parametrize(
    ("path", "list_type", "keys", "strategy", "merge_key"),
    [
        (CONTAINER, "map", ["name"], "merge", "name"),
        ((*POD, "initContainers"), "map", ["name"], "merge", "name"),
        ((*POD, "volumes"), "map", ["name"], "merge,retainKeys", "name"),
        ((*POD, "tolerations"), "atomic", None, None, None),
        ((*POD, "imagePullSecrets"), "map", ["name"], "merge", "name"),
        ((*POD, "schedulingGates"), "map", ["name"], "merge", "name"),
        ((*POD, "hostAliases"), "map", ["ip"], "merge", "ip"),
        ((*POD, "resourceClaims"), "map", ["name"], "merge,retainKeys", "name"),
        (
            (*POD, "topologySpreadConstraints"),
            "map",
            ["topologyKey", "whenUnsatisfiable"],
            "merge",
            "topologyKey",
        ),
        ((*CONTAINER, "env"), "map", ["name"], "merge", "name"),
        ((*CONTAINER, "envFrom"), "atomic", None, None, None),
        (
            (*CONTAINER, "ports"),
            "map",
            ["containerPort", "protocol"],
            "merge",
            "containerPort",
        ),
        ((*CONTAINER, "volumeMounts"), "map", ["mountPath"], "merge", "mountPath"),
        ((*CONTAINER, "volumeDevices"), "map", ["devicePath"], "merge", "devicePath"),
        ((*CONTAINER, "command"), "atomic", None, None, None),
        ((*CONTAINER, "resources", "claims"), "map", ["name"], None, None),
        (("Pod", "status", "conditions"), "map", ["type"], "merge", "type"),
        (("Job", "status", "conditions"), "atomic", None, "merge", "type"),
        (("Pod", "metadata", "ownerReferences"), "map", ["uid"], "merge", "uid"),
        (("Pod", "metadata", "finalizers"), "set", None, "merge", None),
        (("Service", "spec", "ports"), "map", ["port", "protocol"], "merge", "port"),
        ((*JOBSET, "replicatedJobs"), "map", ["name"], "merge", "name"),
        ((*JOBSET, "replicatedJobs", "dependsOn"), "map", ["name"], None, None),
        ((*JOBSET, "successPolicy", "targetReplicatedJobs"), "atomic", None, None, None),
        ((*JOBSET, "volumeClaimPolicies"), "atomic", None, None, None),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else None,
)
def test_lists_merge_as_kubernetes_merges_them(
    path: tuple[str, ...],
    list_type: str,
    keys: list[str] | None,
    strategy: str | None,
    merge_key: str | None,
) -> None:
    node = find(*path)
    assert node["x-kubernetes-list-type"] == list_type
    assert node.get("x-kubernetes-list-map-keys") == keys
    assert node.get("x-kubernetes-patch-strategy") == strategy
    assert node.get("x-kubernetes-patch-merge-key") == merge_key


JOBSET_DEFAULTS = {
    "$.spec.replicatedJobs[].groupName": "default",
    "$.spec.replicatedJobs[].replicas": 1,
    "$.spec.failurePolicy.restartStrategy": "Recreate",
    "$.spec.volumeClaimPolicies[].retentionPolicy.whenDeleted": "Delete",
}


def test_jobset_has_exactly_the_static_defaults_of_its_crd() -> None:
    own = {
        path: node["default"]
        for path, node in walk(root_of(next(k for k in KINDS if k.kind == "JobSet")))
        if "default" in node and ".template.spec" not in path
    }
    assert own == JOBSET_DEFAULTS
