"""OpenAPI v3: one document per group and version, from the schemas that admission works with.

kubectl reads from it what `explain` shows, whether the server validates fields itself, and how lists
merge in a strategic merge patch.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from trainwright.api.schemas.metadata import OBJECT_META as OBJECT_META_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainwright.api.kinds import Kind
    from trainwright.server.requests import ServedKind

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
LIST_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"
DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"

_TEXT = {"type": "string"}
_PARAMETERS: Mapping[str, Sequence[str]] = {
    "get": ("pretty",),
    "list": (
        "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "pretty",
        "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
    ),
    "post": ("dryRun", "fieldManager", "fieldValidation", "pretty"),
    "put": ("dryRun", "fieldManager", "fieldValidation", "pretty"),
    "patch": ("dryRun", "fieldManager", "fieldValidation", "force", "pretty"),
    "delete": ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy", "pretty"),
}  # fmt: skip
_PARAMETER_TYPES = {
    "limit": "integer", "timeoutSeconds": "integer", "gracePeriodSeconds": "integer",
    "watch": "boolean", "force": "boolean", "allowWatchBookmarks": "boolean",
    "sendInitialEvents": "boolean", "orphanDependents": "boolean",
}  # fmt: skip


def group_version_path(kind: Kind) -> str:
    """The key of the index: `api/v1` or `apis/batch/v1`."""
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def build_index(documents: Mapping[str, bytes]) -> dict[str, Any]:
    """`/openapi/v3`; the hash lets clients keep a document until it changes."""
    return {
        "paths": {
            path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={_hash(document)}"}
            for path, document in documents.items()
        }
    }


def _hash(document: bytes) -> str:
    return hashlib.sha256(document).hexdigest().upper()[:32]


def build_document(served: Sequence[ServedKind], version: str) -> dict[str, Any]:
    """The document of one group and version. `version` is the server's."""
    schemas: dict[str, Any] = {
        LIST_META: _LIST_META,
        STATUS: _STATUS,
        DELETE_OPTIONS: _DELETE_OPTIONS,
    }
    paths: dict[str, Any] = {}
    for one in served:
        schemas |= _build_schemas(one)
        paths |= _build_paths(one)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Trainwright", "version": version},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def component_name(kind: Kind) -> str:
    """The name of a kind's schema: `dev.example.v1.Thing`, `io.k8s.api.core.v1.Pod`."""
    if "." not in kind.group or kind.group.endswith(".k8s.io"):
        area = kind.group.removesuffix(".k8s.io").split(".")[0] or "core"
        return f"io.k8s.api.{area}.{kind.version}.{kind.kind}"
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def _gvk(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _build_schemas(served: ServedKind) -> dict[str, Any]:
    kind: Kind = served.kind
    schema = dict(served.schema or {"type": "object"})
    properties = dict(schema.get("properties") or {})
    meta = properties.get("metadata") or {}
    extra: dict[str, Any] = {}
    if "name" in (meta.get("properties") or {}):
        extra[OBJECT_META] = meta
    else:
        extra[OBJECT_META] = OBJECT_META_SCHEMA
    properties |= {
        "apiVersion": _described("Version of the schema of this object."),
        "kind": _described("Name of the kind of this object."),
        "metadata": {"allOf": [_ref(OBJECT_META)], "default": {}},
    }
    schema |= {"properties": properties, "x-kubernetes-group-version-kind": [_gvk(kind)]}
    name = component_name(kind)
    items = {
        "type": "object",
        "description": f"A list of {kind.kind} objects.",
        "required": ["items"],
        "properties": {
            "apiVersion": _TEXT,
            "kind": _TEXT,
            "metadata": {"allOf": [_ref(LIST_META)], "default": {}},
            "items": {"type": "array", "items": {"allOf": [_ref(name)], "default": {}}},
        },
        "x-kubernetes-group-version-kind": [
            {"group": kind.group, "version": kind.version, "kind": kind.list_kind}
        ],
    }
    return {name: schema, f"{name}List": items, **extra}


def _described(text: str) -> dict[str, Any]:
    return {"type": "string", "description": text}


def _build_paths(served: ServedKind) -> dict[str, Any]:
    kind: Kind = served.kind
    where = "{namespace}" if kind.namespaced else ""
    path_parameters = [_path_parameter("namespace")] if kind.namespaced else []
    item_parameters = [_path_parameter("name"), *path_parameters]
    paths = {
        kind.path(where): {
            "parameters": path_parameters,
            "get": _operation(kind, "list"),
            "post": _operation(kind, "post"),
            "delete": _operation(kind, "deletecollection"),
        },
        kind.path(where, "{name}"): {
            "parameters": item_parameters,
            "get": _operation(kind, "get"),
            "put": _operation(kind, "put"),
            "patch": _patch_operation(served),
            "delete": _operation(kind, "delete"),
        },
    }
    if kind.namespaced:
        paths[kind.path()] = {"parameters": [], "get": _operation(kind, "list")}
    if "status" in kind.subresources:
        paths[kind.path(where, "{name}", "status")] = {
            "parameters": item_parameters,
            "get": _operation(kind, "get"),
            "put": _operation(kind, "put"),
            "patch": _patch_operation(served),
        }
    return paths


def _path_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": _TEXT}


def _query_parameters(action: str) -> list[dict[str, Any]]:
    names = _PARAMETERS["delete" if action == "deletecollection" else action]
    return [
        {"name": name, "in": "query", "schema": {"type": _PARAMETER_TYPES.get(name, "string")}}
        for name in names
    ]


def _operation(kind: Kind, action: str) -> dict[str, Any]:
    name = component_name(kind)
    answer = {"list": f"{name}List", "delete": STATUS, "deletecollection": STATUS}.get(action, name)
    operation: dict[str, Any] = {
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(kind),
        "parameters": _query_parameters(action),
        "responses": {"200": {"description": "OK", "content": _json(_ref(answer))}},
    }
    if action in {"post", "put"}:
        operation["requestBody"] = {"required": True, "content": _json(_ref(name))}
    if action in {"delete", "deletecollection"}:
        operation["requestBody"] = {"content": _json(_ref(DELETE_OPTIONS))}
    return operation


def _json(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _patch_operation(served: ServedKind) -> dict[str, Any]:
    operation = _operation(served.kind, "patch")
    content = {str(type_): {"schema": {"type": "object"}} for type_ in served.patch_types}
    return operation | {"requestBody": {"required": True, "content": content}}


_LIST_META = {
    "type": "object",
    "properties": {
        "continue": _TEXT,
        "remainingItemCount": {"type": "integer", "format": "int64"},
        "resourceVersion": _TEXT,
        "selfLink": _TEXT,
    },
}
_STATUS = {
    "type": "object",
    "properties": {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "metadata": {"allOf": [_ref(LIST_META)], "default": {}},
        "status": _TEXT,
        "message": _TEXT,
        "reason": _TEXT,
        "code": {"type": "integer", "format": "int32"},
        "details": {"type": "object"},
    },
    "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Status"}],
}
_DELETE_OPTIONS = {
    "type": "object",
    "properties": {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "dryRun": {"type": "array", "items": _TEXT},
        "gracePeriodSeconds": {"type": "integer", "format": "int64"},
        "orphanDependents": {"type": "boolean"},
        "propagationPolicy": _TEXT,
        "preconditions": {
            "type": "object",
            "properties": {"uid": _TEXT, "resourceVersion": _TEXT},
        },
    },
}
