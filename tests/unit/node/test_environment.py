from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.node.environment import (
    ConfigError,
    Sources,
    build_command,
    build_environment,
    expand,
    list_references,
    read_field,
    read_resource,
)

if TYPE_CHECKING:
    from trainwright.base.objects import Object

POD: Object = {
    "metadata": {
        "name": "p",
        "namespace": "ns",
        "uid": "u",
        "labels": {"b": "2", "a": 'x"y'},
        "annotations": {"trainwright.dev/x": "7"},
    },
    "spec": {"nodeName": "laptop"},
    "status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}, {"ip": "::1"}]},
}
SOURCES = Sources(
    config_maps={"cm": {"metadata": {"name": "cm"}, "data": {"K": "v", "L": "w"}}, "gone": None},
    secrets={"s": {"metadata": {"name": "s"}, "data": {"K": base64.b64encode(b"z").decode()}}},
)


def build(container: Object) -> dict[str, str]:
    return build_environment(POD, container, SOURCES, base={"SVC": "1"}, allocatable={"cpu": "4"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(B)", "x1y2"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$(MISSING)", "$(MISSING)"),
        ("$(A", "$(A"),
        ("$A ${A} $", "$A ${A} $"),
        ("$$", "$"),
        ("$()", "$()"),
        ("$($(A))", "$($(A))"),
    ],
)
def test_expand(text: str, expected: str) -> None:
    assert expand(text, {"A": "1", "B": "2", "C": "$(A)"}) == expected


def test_expansion_is_not_repeated() -> None:
    assert expand("$(C)", {"A": "1", "C": "$(A)"}) == "$(A)"


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.text(alphabet="aB(x) ", max_size=20))
def test_text_without_dollars_stays(text: str) -> None:
    assert expand(text, {"x": "1"}) == text


def test_variables_are_resolved_in_order() -> None:
    container = {
        "envFrom": [
            {"configMapRef": {"name": "cm"}},
            {"prefix": "P_", "secretRef": {"name": "s"}},
            {"configMapRef": {"name": "gone", "optional": True}},
        ],
        "env": [
            {"name": "L", "value": "own"},
            {"name": "X", "value": "$(K)-$(L)-$(SVC)-$(Y)-$(P_K)"},
            {"name": "Y", "valueFrom": {"secretKeyRef": {"name": "s", "key": "K"}}},
            {"name": "N", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "no", "optional": True}}},
        ],
    }  # fmt: skip
    assert build(container) == {
        "SVC": "1", "K": "v", "L": "own", "P_K": "z", "X": "v-own-1-$(Y)-z", "Y": "z"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("container", "message"),
    [
        ({"envFrom": [{"configMapRef": {"name": "gone"}}]}, 'configmap "gone" not found'),
        ({"envFrom": [{"secretRef": {"name": "no"}}]}, 'secret "no" not found'),
        (
            {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "q"}}}]},
            "couldn't find key q in configmap cm",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}]},
            "unsupported fieldPath: spec.x",
        ),
    ],
)
def test_what_is_missing_is_named(container: Object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(container)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "p"),
        ("metadata.labels['b']", "2"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['trainwright.dev/x']", "7"),
        ("metadata.labels", 'a="x\\"y"\nb="2"'),
        ("status.podIPs", "127.0.0.1,::1"),
        ("spec.serviceAccountName", ""),
    ],
)
def test_fields(path: str, value: str) -> None:
    assert read_field(POD, path) == value


@pytest.mark.parametrize(
    ("resource", "divisor", "value"),
    [
        ("limits.cpu", "1", "1"),
        ("limits.cpu", "1m", "500"),
        ("limits.memory", "1Mi", "2048"),
        ("limits.memory", "0", "2147483648"),
        ("requests.memory", "1", "0"),
        ("limits.ephemeral-storage", "1", "10"),
    ],
)
def test_resources(resource: str, divisor: str, value: str) -> None:
    container: dict[str, Any] = {"resources": {"limits": {"cpu": "500m", "memory": "2Gi"}}}
    reference = {"resource": resource, "divisor": divisor}
    assert read_resource(container, reference, {"ephemeral-storage": "10"}) == value


def test_command_is_expanded_and_must_be_there() -> None:
    container = {"name": "c", "command": ["run", "$(A)"], "args": ["--x=$(A)", "$$(A)"]}
    assert build_command(container, {"A": "1"}) == ("run", "1", "--x=1", "$(A)")
    with pytest.raises(ConfigError, match="give command"):
        build_command({"name": "c", "image": "i", "args": ["a"]}, {})


def test_references_of_variables_and_volumes() -> None:
    pod = {
        "spec": {
            "containers": [
                {"envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "b"}}]}
            ],
            "volumes": [
                {"secret": {"secretName": "c"}},
                {"projected": {"sources": [{"configMap": {"name": "d"}}]}},
            ],
        }
    }
    assert list_references(pod) == (frozenset("ad"), frozenset("bc"))
