from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from trainwright.api import kinds
from trainwright.api.kinds import KINDS, Kind
from trainwright.core.admission import Request, build_admission
from trainwright.core.builtin.definitions import find_structural_errors

if TYPE_CHECKING:
    from trainwright.base.objects import Object

TABLE = build_admission()


def make_request(kind: Kind, new: Object, old: Object | None = None) -> Request:
    return Request(
        kind=kind,
        new=new,
        old=old,
        lookup=lambda _kind, _namespace, _name: None,
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )


def default(kind: Kind, new: Object, old: Object | None = None) -> Object:
    admission = TABLE[kind]
    assert admission.default is not None
    return admission.default(make_request(kind, new, old))


def paths(kind: Kind, new: Object, old: Object | None = None) -> list[str]:
    admission = TABLE[kind]
    assert admission.validate is not None
    return [e.path for e in admission.validate(make_request(kind, new, old)).errors]


def text(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def test_table_names_known_kinds_with_something_to_do() -> None:
    assert set(TABLE) <= set(KINDS)
    assert all(row.default or row.validate for row in TABLE.values())


@pytest.mark.parametrize(
    ("new", "path"),
    [
        ({"data": {"a/b": "c"}}, "data[a/b]"),
        ({"data": {"..": "c"}}, "data[..]"),
        ({"data": {"a": "b"}, "binaryData": {"a": "YQ=="}}, "data[a]"),
        ({"data": {"a": "x" * (1024 * 1024 + 1)}}, ""),
    ],
)
def test_config_map_is_refused_at(new: dict[str, Any], path: str) -> None:
    assert paths(kinds.CONFIG_MAP, new) == [path]


def test_config_map_marked_immutable_keeps_its_data() -> None:
    old = {"data": {"a": "b"}, "immutable": True}
    assert paths(kinds.CONFIG_MAP, {**old, "metadata": {"labels": {}}}, old) == []
    assert paths(kinds.CONFIG_MAP, {"data": {"a": "c"}}, old) == ["immutable", "data"]


def test_secret_takes_plain_texts_and_a_type() -> None:
    new = default(kinds.SECRET, {"data": {"a": text("1")}, "stringData": {"a": "2", "b": "é"}})
    assert new == {"type": "Opaque", "data": {"a": text("2"), "b": text("é")}}


@pytest.mark.parametrize(
    ("new", "old", "path"),
    [
        ({"type": "Opaque", "data": {"a": "?"}}, None, "data[a]"),
        ({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}}, None, "data[tls.key]"),
        ({"type": "b"}, {"type": "a"}, "type"),
        (
            {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": text("no")}},
            None,
            "data[.dockerconfigjson]",
        ),
    ],
)
def test_secret_is_refused_at(new: Object, old: Object | None, path: str) -> None:
    assert paths(kinds.SECRET, new, old) == [path]


def test_service_without_an_address_is_headless_and_stable() -> None:
    new = default(kinds.SERVICE, {"spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}})
    assert new["spec"]["clusterIP"] == "None"
    assert new["spec"]["ports"] == [{"protocol": "TCP", "targetPort": 80, "port": 80}]
    assert default(kinds.SERVICE, new) == new
    assert paths(kinds.SERVICE, new) == []
    assert default(kinds.SERVICE, {"spec": {}}, new)["spec"]["clusterIP"] == "None"


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"type": "Other"}, "spec.type"),
        ({"type": "ExternalName"}, "spec.externalName"),
        ({"ports": [{"port": 0}]}, "spec.ports[0].port"),
        ({"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}]}, "spec.ports[1].name"),
        ({"ports": [{"port": 1, "name": "a"}, {"port": 2}]}, "spec.ports[1].name"),
        ({"selector": {"a": "b c"}}, "spec.selector"),
    ],
)
def test_service_is_refused_at(spec: dict[str, Any], path: str) -> None:
    assert path in paths(kinds.SERVICE, {"spec": {"clusterIP": "None", **spec}})


def test_namespace_starts_active_with_its_finalizer() -> None:
    new = default(kinds.NAMESPACE, {"metadata": {"name": "a"}})
    assert new["status"] == {"phase": "Active"}
    assert new["spec"] == {"finalizers": ["kubernetes"]}
    assert new["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a"}
    ending = {**new, "spec": {}, "status": {"phase": "Terminating"}}
    assert default(kinds.NAMESPACE, ending, new) == ending


def test_claim_needs_a_mode_and_a_size_and_may_grow() -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    old = default(kinds.PERSISTENT_VOLUME_CLAIM, {"spec": spec})
    assert paths(kinds.PERSISTENT_VOLUME_CLAIM, old) == []
    assert paths(kinds.PERSISTENT_VOLUME_CLAIM, {"spec": {}}) == [
        "spec.accessModes",
        "spec.resources[storage]",
    ]
    for size, expected in (("2Gi", []), ("1Mi", ["spec.resources.requests.storage"])):
        new = {"spec": {**old["spec"], "resources": {"requests": {"storage": size}}}}
        assert paths(kinds.PERSISTENT_VOLUME_CLAIM, new, old) == expected
    other = {"spec": {**old["spec"], "storageClassName": "x"}}
    assert paths(kinds.PERSISTENT_VOLUME_CLAIM, other, old) == ["spec"]


def test_priority_class_is_bounded_and_fixed() -> None:
    old = default(kinds.PRIORITY_CLASS, {"metadata": {"name": "a"}, "value": 5})
    assert paths(kinds.PRIORITY_CLASS, {**old, "value": 6}, old) == ["value"]
    assert paths(kinds.PRIORITY_CLASS, {**old, "value": 2_000_000_000}) == ["value"]
    assert paths(kinds.PRIORITY_CLASS, {**old, "metadata": {"name": "system-x"}}) == [
        "metadata.name"
    ]


def make_definition(schema: dict[str, Any]) -> Object:
    return {
        "metadata": {"name": "widgets.acme.io"},
        "spec": {
            "group": "acme.io",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def test_definition_is_established_at_once_with_its_derived_names() -> None:
    new = default(kinds.CUSTOM_RESOURCE_DEFINITION, make_definition({"type": "object"}))
    assert new["spec"]["names"] == {
        "plural": "widgets",
        "kind": "Widget",
        "listKind": "WidgetList",
        "singular": "widget",
    }
    assert [(c["type"], c["status"]) for c in new["status"]["conditions"]] == [
        ("NamesAccepted", "True"),
        ("Established", "True"),
    ]
    assert new["status"]["storedVersions"] == ["v1"]
    assert paths(kinds.CUSTOM_RESOURCE_DEFINITION, new) == []
    assert default(kinds.CUSTOM_RESOURCE_DEFINITION, new, new) == new


def test_definition_with_a_rule_that_does_not_compile_is_refused() -> None:
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": "self.x.nope()"}]}
    new = default(kinds.CUSTOM_RESOURCE_DEFINITION, make_definition(schema))
    assert paths(kinds.CUSTOM_RESOURCE_DEFINITION, new) == [
        "spec.versions[0].schema.openAPIV3Schema.x-kubernetes-validations[0].rule"
    ]
    new["metadata"] = {"name": "other"}
    assert "metadata.name" in paths(kinds.CUSTOM_RESOURCE_DEFINITION, new)


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({}, "s.type"),
        ({"type": "thing"}, "s.type"),
        ({"type": "array"}, "s.items"),
        ({"type": "string", "pattern": "("}, "s.pattern"),
        ({"type": "integer", "default": "x"}, "s.default"),
        ({"type": "object", "properties": {"a": {}}}, "s.properties[a].type"),
        ({"type": "object", "additionalProperties": {}}, "s.additionalProperties.type"),
        (
            {
                "type": "array",
                "items": {"type": "object"},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "s.x-kubernetes-list-map-keys",
        ),
    ],
)
def test_schema_is_not_structural_at(schema: dict[str, Any], path: str) -> None:
    assert [e.path for e in find_structural_errors(schema, "s")] == [path]


def test_event_gets_times_and_stays_in_its_objects_namespace() -> None:
    new = default(
        kinds.EVENT, {"metadata": {"namespace": "a"}, "involvedObject": {"namespace": "a"}}
    )
    assert (new["count"], new["firstTimestamp"]) == (1, "2026-01-01T00:00:00Z")
    assert paths(kinds.EVENT, new) == []
    new["involvedObject"] = {"namespace": "b"}
    assert paths(kinds.EVENT, new) == ["involvedObject.namespace"]
