"""CustomResourceDefinitions of the kinds that a real cluster must learn, built from our tables.

The embedded server has these from its first start; `install` applies the same objects to a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.api.kinds import (
    COSCHEDULING_POD_GROUP,
    CUSTOM_KINDS,
    JOBSET,
    TRAINJOB,
    VOLCANO_POD_GROUP,
    Kind,
)
from trainwright.api.schemas.registry import schema_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainwright.api.schemas.structural import Schema
    from trainwright.base.objects import Object

WIDE = 1
"""Priority of columns that only `-o wide` shows."""


def _column(name: str, json_path: str, *, kind: str = "string", priority: int = 0) -> Object:
    column: Object = {"name": name, "type": kind, "jsonPath": json_path}
    return column | {"priority": priority} if priority else column


def _age() -> Object:
    return _column("Age", ".metadata.creationTimestamp", kind="date")


def _node_count(name: str, field: str) -> Object:
    path = f'.status.jobsStatus[?(@.name=="node")].{field}'
    return _column(name, path, kind="integer", priority=WIDE)


COLUMNS: Mapping[Kind, tuple[Object, ...]] = {
    TRAINJOB: (
        _column("State", ".status.conditions[-1:].type"),
        _age(),
        _column("Runtime", ".spec.runtimeRef.name", priority=WIDE),
        _node_count("Active", "active"),
        _node_count("Ready", "ready"),
        _node_count("Succeeded", "succeeded"),
        _node_count("Failed", "failed"),
    ),
    JOBSET: (
        _column("TerminalState", ".status.terminalState"),
        _column("Restarts", ".status.restarts"),
        _column("Completed", '.status.conditions[?(@.type=="Completed")].status'),
        _column("Suspended", ".spec.suspend"),
        _age(),
    ),
    COSCHEDULING_POD_GROUP: (
        _column("Phase", ".status.phase"),
        _column("MinMember", ".spec.minMember", kind="integer"),
        _column("Running", ".status.running", kind="integer"),
        _column("Succeeded", ".status.succeeded", kind="integer"),
        _column("Failed", ".status.failed", kind="integer"),
        _age(),
    ),
    VOLCANO_POD_GROUP: (
        _column("Status", ".status.phase"),
        _column("MinMember", ".spec.minMember", kind="integer"),
        _column("Running", ".status.running", kind="integer"),
        _age(),
        _column("Queue", ".spec.queue", priority=WIDE),
    ),
}
"""Columns of `kubectl get`; a kind without any shows its age.

The wide columns of a TrainJob count the Jobs of the replicated job `node`.
"""

_NOT_IN_CRDS = ("x-kubernetes-patch-", "x-kubernetes-group-version-kind")
"""Marks that an API server refuses, or drops, in the schema of a CRD."""


def build_crd(kind: Kind) -> Object:
    """The CRD of one custom kind.

    Raises:
        ValueError: for a kind that is built into Kubernetes.

    Source: Trainer 2.3, JobSet 0.12, scheduler-plugins 0.35, Volcano 1.13.
    Differs: wide columns of TrainJob; fields of Trainer 2.0 and 2.1 are let in to be converted.
    """
    schema = schema_of(kind)
    if kind not in CUSTOM_KINDS or schema is None:
        raise ValueError(f"{kind.resource} is no custom kind and has no CRD")
    version: Object = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _build_crd_schema(schema)},
    }
    if columns := COLUMNS.get(kind):
        version["additionalPrinterColumns"] = [dict(column) for column in columns]
    if "status" in kind.subresources:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.resource},
        "spec": {
            "group": kind.group,
            "names": _build_names(kind),
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
    }


def build_all_crds() -> tuple[Object, ...]:
    """The CRDs of all custom kinds, in the order of the table."""
    return tuple(build_crd(kind) for kind in CUSTOM_KINDS)


def _build_names(kind: Kind) -> Object:
    names: Object = {
        "kind": kind.kind,
        "listKind": kind.list_kind,
        "plural": kind.plural,
        "singular": kind.singular,
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    if kind.categories:
        names["categories"] = list(kind.categories)
    return names


def _build_crd_schema(schema: Schema) -> Schema:
    root: Schema = _strip(schema)
    root["properties"]["metadata"] = {"type": "object"}
    return root


def _strip(value: Any) -> Any:
    if isinstance(value, list):
        return [_strip(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _strip(item) for key, item in value.items() if not key.startswith(_NOT_IN_CRDS)}
