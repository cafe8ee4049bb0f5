"""Tables as kubectl prints them: columns of built-in kinds, and of custom ones from their CRD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainwright.base.objects import ObjectView, dig, name_of
from trainwright.schema.columns import render_cell
from trainwright.server.tablecells import (
    count_data,
    render_completions,
    render_job_duration,
    render_job_status,
    render_pairs,
    render_ports,
    render_restarts,
    render_roles,
    render_selector,
    render_since,
    summarise_pod,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from trainwright.server.requests import ServedKind

    Cell = Callable[[ObjectView, datetime], Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its header and how a cell is read from an object."""

    name: str
    cell: Cell
    type: str = "string"
    priority: int = 0
    """0 is always shown, 1 only with `-o wide`."""
    format: str = ""
    description: str = ""

    def to_definition(self) -> dict[str, Any]:
        """The entry of `columnDefinitions`."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description or self.name,
            "priority": self.priority,
        }


def _field(*path: str | int, default: Any = "") -> Cell:
    return lambda obj, _now: dig(obj, *path, default=default)


def _age(*path: str) -> Cell:
    where = path or ("metadata", "creationTimestamp")
    return lambda obj, now: render_since(dig(obj, *where, default=""), now)


NAME = Column(
    "Name", lambda obj, _now: name_of(obj), format="name", description="Name of the object"
)
AGE = Column("Age", _age(), description="Time since the object was created")


def _wide(name: str, cell: Cell) -> Column:
    return Column(name, cell, priority=1)


def _containers(key: str) -> Cell:
    return lambda obj, _now: ",".join(
        str(container.get(key, ""))
        for container in dig(obj, "spec", "template", "spec", "containers", default=[])
    )


_PODS = (
    NAME,
    Column("Ready", lambda o, _now: summarise_pod(o).ready),
    Column("Status", lambda o, _now: summarise_pod(o).status),
    Column("Restarts", lambda o, now: render_restarts(summarise_pod(o), now)),
    AGE,
    _wide("IP", _field("status", "podIP", default="<none>")),
    _wide("Node", _field("spec", "nodeName", default="<none>")),
    _wide("Nominated Node", _field("status", "nominatedNodeName", default="<none>")),
    _wide("Readiness Gates", lambda _o, _now: "<none>"),
)

_JOBS = (
    NAME,
    Column("Status", lambda o, _now: render_job_status(o)),
    Column("Completions", lambda o, _now: render_completions(o)),
    Column("Duration", render_job_duration),
    AGE,
    _wide("Containers", _containers("name")),
    _wide("Images", _containers("image")),
    _wide("Selector", lambda o, _now: render_selector(dig(o, "spec", "selector", default={}))),
)


def _event_object(obj: ObjectView, _now: datetime) -> str:
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def _event_last_seen(obj: ObjectView, now: datetime) -> str:
    seen = (
        dig(obj, "series", "lastObservedTime")
        or dig(obj, "lastTimestamp")
        or dig(obj, "deprecatedLastTimestamp")
        or dig(obj, "eventTime")
        or dig(obj, "metadata", "creationTimestamp")
    )
    return render_since(str(seen or ""), now)


def _event_first_seen(obj: ObjectView, now: datetime) -> str:
    seen = (
        dig(obj, "firstTimestamp") or dig(obj, "deprecatedFirstTimestamp") or dig(obj, "eventTime")
    )
    return render_since(str(seen or ""), now)


_EVENTS = (
    Column("Last Seen", _event_last_seen),
    Column("Type", _field("type")),
    Column("Reason", _field("reason")),
    Column("Object", _event_object),
    _wide("Subobject", _field("involvedObject", "fieldPath")),
    _wide(
        "Source",
        lambda o, _now: dig(
            o, "source", "component", default=dig(o, "reportingComponent", default="")
        ),
    ),
    Column("Message", lambda o, _now: str(o.get("message") or o.get("note") or "").strip()),
    _wide("First Seen", _event_first_seen),
    Column(
        "Count",
        lambda o, _now: dig(o, "series", "count", default=o.get("count") or 1),
        "integer",
        1,
    ),
    Column("Name", lambda o, _now: name_of(o), priority=1, format="name"),
)

_SERVICES = (
    NAME,
    Column("Type", _field("spec", "type", default="ClusterIP")),
    Column("Cluster-IP", _field("spec", "clusterIP", default="<none>")),
    Column("External-IP", lambda _o, _now: "<none>"),
    Column("Port(s)", lambda o, _now: render_ports(dig(o, "spec", "ports", default=[]))),
    AGE,
    _wide("Selector", lambda o, _now: render_pairs(dig(o, "spec", "selector", default={}))),
)


def _node_status(obj: ObjectView, _now: datetime) -> str:
    conditions = dig(obj, "status", "conditions", default=[])
    ready = next((c.get("status") for c in conditions if c.get("type") == "Ready"), None)
    text = {"True": "Ready", "False": "NotReady"}.get(str(ready), "Unknown")
    return text + (",SchedulingDisabled" if dig(obj, "spec", "unschedulable") else "")


def _node_address(kind: str) -> Cell:
    def read(obj: ObjectView, _now: datetime) -> str:
        addresses = dig(obj, "status", "addresses", default=[])
        return next((a.get("address", "") for a in addresses if a.get("type") == kind), "<none>")

    return read


_NODES = (
    NAME,
    Column("Status", _node_status),
    Column("Roles", lambda o, _now: render_roles(dig(o, "metadata", "labels", default={}))),
    AGE,
    Column("Version", _field("status", "nodeInfo", "kubeletVersion")),
    _wide("Internal-IP", _node_address("InternalIP")),
    _wide("External-IP", _node_address("ExternalIP")),
    _wide("OS-Image", _field("status", "nodeInfo", "osImage")),
    _wide("Kernel-Version", _field("status", "nodeInfo", "kernelVersion")),
    _wide("Container-Runtime", _field("status", "nodeInfo", "containerRuntimeVersion")),
)

_PERSISTENT_VOLUME_CLAIMS = (
    NAME,
    Column("Status", _field("status", "phase")),
    Column("Volume", _field("spec", "volumeName")),
    Column("Capacity", _field("status", "capacity", "storage")),
    Column("Access Modes", lambda o, _now: ",".join(dig(o, "spec", "accessModes", default=[]))),
    Column("StorageClass", _field("spec", "storageClassName")),
    Column(
        "VolumeAttributesClass",
        lambda o, _now: dig(o, "spec", "volumeAttributesClassName", default="<unset>"),
    ),
    AGE,
    _wide("VolumeMode", _field("spec", "volumeMode")),
)

_QUOTAS = (
    NAME,
    Column(
        "Request",
        lambda o, _now: ", ".join(
            f"{name}: {dig(o, 'status', 'used', name, default='0')}/{limit}"
            for name, limit in sorted(dig(o, "spec", "hard", default={}).items())
        ),
    ),
    Column("Limit", lambda _o, _now: ""),
    AGE,
)

_CREATED_AT = Column("Created At", _field("metadata", "creationTimestamp"))

_BUILTIN: Mapping[tuple[str, str], Sequence[Column]] = {
    ("", "pods"): _PODS,
    ("batch", "jobs"): _JOBS,
    ("", "events"): _EVENTS,
    ("events.k8s.io", "events"): _EVENTS,
    ("", "services"): _SERVICES,
    ("", "nodes"): _NODES,
    ("", "persistentvolumeclaims"): _PERSISTENT_VOLUME_CLAIMS,
    ("", "resourcequotas"): _QUOTAS,
    ("", "namespaces"): (NAME, Column("Status", _field("status", "phase", default="Active")), AGE),
    ("", "configmaps"): (NAME, Column("Data", lambda o, _now: count_data(o)), AGE),
    ("", "secrets"): (
        NAME,
        Column("Type", _field("type", default="Opaque")),
        Column("Data", lambda o, _now: count_data(o)),
        AGE,
    ),
    ("", "serviceaccounts"): (
        NAME,
        Column("Secrets", lambda o, _now: len(dig(o, "secrets", default=[])), "integer"),
        AGE,
    ),
    ("", "limitranges"): (NAME, _CREATED_AT),
    ("coordination.k8s.io", "leases"): (
        NAME,
        Column("Holder", _field("spec", "holderIdentity")),
        AGE,
    ),
    ("scheduling.k8s.io", "priorityclasses"): (
        NAME,
        Column("Value", _field("value", default=0), "integer"),
        Column("Global-Default", lambda o, _now: str(bool(o.get("globalDefault"))).lower()),
        AGE,
    ),
    ("apiextensions.k8s.io", "customresourcedefinitions"): (NAME, _CREATED_AT),
    ("rbac.authorization.k8s.io", "roles"): (NAME, _CREATED_AT),
    ("rbac.authorization.k8s.io", "clusterroles"): (NAME, _CREATED_AT),
    ("rbac.authorization.k8s.io", "rolebindings"): (
        NAME,
        Column("Role", lambda o, _now: f"{dig(o, 'roleRef', 'kind')}/{dig(o, 'roleRef', 'name')}"),
        AGE,
    ),
    ("rbac.authorization.k8s.io", "clusterrolebindings"): (
        NAME,
        Column("Role", lambda o, _now: f"{dig(o, 'roleRef', 'kind')}/{dig(o, 'roleRef', 'name')}"),
        AGE,
    ),
}


def find_columns(served: ServedKind) -> Sequence[Column]:
    """The columns of a kind: ours for built-in kinds, the CRD's otherwise, else Name and Age."""
    kind = served.kind
    builtin = _BUILTIN.get((kind.group, kind.plural))
    if builtin is not None:
        return builtin
    declared = [_declared_column(spec) for spec in served.printer_columns]
    return (NAME, *declared) if declared else (NAME, AGE)


def _declared_column(spec: Mapping[str, Any]) -> Column:
    return Column(
        spec["name"],
        lambda obj, now: render_cell(spec, obj, now),
        spec.get("type", "string"),
        spec.get("priority", 0),
        spec.get("format", ""),
        spec.get("description", ""),
    )


def build_definitions(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """`columnDefinitions` of a Table."""
    return [column.to_definition() for column in columns]


def build_row(
    columns: Sequence[Column], obj: ObjectView, now: datetime, include: str
) -> dict[str, Any]:
    """One row; `include` is the query's includeObject: None, Metadata or Object."""
    row: dict[str, Any] = {"cells": [column.cell(obj, now) for column in columns]}
    if include == "Object":
        row["object"] = obj
    elif include != "None":
        row["object"] = build_partial(obj)
    return row


def build_partial(obj: ObjectView) -> dict[str, Any]:
    """The object's metadata alone, as PartialObjectMetadata."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj.get("metadata") or {},
    }


def build_table(
    columns: Sequence[Column],
    rows: Sequence[Mapping[str, Any]],
    metadata: Mapping[str, Any],
    *,
    with_definitions: bool = True,
) -> dict[str, Any]:
    """A Table. In a watch only the first event needs the definitions."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": dict(metadata),
        "columnDefinitions": build_definitions(columns) if with_definitions else None,
        "rows": list(rows),
    }
