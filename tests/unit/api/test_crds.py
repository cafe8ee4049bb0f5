"""CRDs: names, scope, columns and subresources of each custom kind."""

from __future__ import annotations

import json

import pytest

from trainwright.api.crds import build_all_crds, build_crd
from trainwright.api.kinds import (
    CLUSTER_TRAINING_RUNTIME,
    CUSTOM_KINDS,
    JOBSET,
    POD,
    TRAINING_RUNTIME,
    TRAINJOB,
    Kind,
)


@pytest.mark.parametrize("kind", CUSTOM_KINDS, ids=lambda kind: kind.resource)
def test_crd_names_the_kind_and_carries_no_mark_that_a_server_refuses(kind: Kind) -> None:
    crd = build_crd(kind)
    assert crd["metadata"]["name"] == f"{kind.plural}.{kind.group}"
    spec = crd["spec"]
    assert spec["names"]["listKind"] == f"{kind.kind}List"
    assert [version["name"] for version in spec["versions"]] == [kind.version]
    (version,) = spec["versions"]
    assert version["served"] is True
    assert version["storage"] is True
    assert ("subresources" in version) == ("status" in kind.subresources)
    schema = version["schema"]["openAPIV3Schema"]
    assert schema["properties"]["metadata"] == {"type": "object"}
    text = json.dumps(schema)
    assert "x-kubernetes-patch" not in text
    assert "group-version-kind" not in text


@pytest.mark.parametrize(
    ("kind", "scope", "columns", "wide"),
    [
        (
            TRAINJOB,
            "Namespaced",
            [
                ("State", "string", ".status.conditions[-1:].type"),
                ("Age", "date", ".metadata.creationTimestamp"),
            ],
            ["Runtime", "Active", "Ready", "Succeeded", "Failed"],
        ),
        (TRAINING_RUNTIME, "Namespaced", [], []),
        (CLUSTER_TRAINING_RUNTIME, "Cluster", [], []),
        (
            JOBSET,
            "Namespaced",
            [
                ("TerminalState", "string", ".status.terminalState"),
                ("Restarts", "string", ".status.restarts"),
                ("Completed", "string", '.status.conditions[?(@.type=="Completed")].status'),
                ("Suspended", "string", ".spec.suspend"),
                ("Age", "date", ".metadata.creationTimestamp"),
            ],
            [],
        ),
    ],
    ids=["trainjobs", "trainingruntimes", "clustertrainingruntimes", "jobsets"],
)
def test_columns_are_those_that_people_know(
    kind: Kind, scope: str, columns: list[tuple[str, str, str]], wide: list[str]
) -> None:
    spec = build_crd(kind)["spec"]
    assert spec["scope"] == scope
    seen = spec["versions"][0].get("additionalPrinterColumns", [])
    shown = [
        (column["name"], column["type"], column["jsonPath"])
        for column in seen
        if not column.get("priority")
    ]
    assert shown == columns
    assert [column["name"] for column in seen if column.get("priority") == 1] == wide


def test_all_crds_are_built_and_each_is_its_own_to_edit() -> None:
    first = build_all_crds()
    assert len(first) == len(CUSTOM_KINDS)
    first[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].clear()
    assert build_all_crds()[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]


def test_built_in_kinds_have_no_crd() -> None:
    with pytest.raises(ValueError, match="pods is no custom kind"):
        build_crd(POD)
