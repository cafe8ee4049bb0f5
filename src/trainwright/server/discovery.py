"""Discovery: which groups, versions and resources are served, in the legacy and the aggregated form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainwright.api.kinds import Kind

OBJECT_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
REVIEW_VERBS = ("create",)

SUBRESOURCES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "status": ("", ("get", "patch", "update")),
    "finalize": ("", ("update",)),
    "log": ("", ("get",)),
    "exec": ("PodExecOptions", ("create", "get")),
    "attach": ("PodAttachOptions", ("create", "get")),
    "binding": ("Binding", ("create",)),
    "eviction": ("Eviction", ("create",)),
    "token": ("TokenRequest", ("create",)),
}
"""Each subresource that we serve: the kind it speaks ("" is the object's own) and its verbs."""

_FOREIGN_GROUPS = {"Eviction": ("policy", "v1"), "TokenRequest": ("authentication.k8s.io", "v1")}


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource as discovery tells of it."""

    kind: Kind
    verbs: tuple[str, ...] = OBJECT_VERBS


def group_versions(resources: Sequence[Resource]) -> Mapping[str, Sequence[str]]:
    """Versions by group, the preferred one first, in the order of `resources`."""
    found: dict[str, list[str]] = {}
    for resource in resources:
        versions = found.setdefault(resource.kind.group, [])
        if resource.kind.version not in versions:
            versions.append(resource.kind.version)
    return found


def _of(resources: Sequence[Resource], group: str, version: str) -> list[Resource]:
    return [r for r in resources if (r.kind.group, r.kind.version) == (group, version)]


def build_api_versions() -> dict[str, Any]:
    """`/api`, legacy."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def build_group_list(resources: Sequence[Resource]) -> dict[str, Any]:
    """`/apis`, legacy."""
    groups = [
        _group(group, versions) for group, versions in group_versions(resources).items() if group
    ]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def build_group(resources: Sequence[Resource], group: str) -> dict[str, Any] | None:
    """`/apis/<group>`, legacy; None when it is not served."""
    versions = group_versions(resources).get(group)
    if versions is None or not group:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions)}


def _group(group: str, versions: Sequence[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def build_resource_list(
    resources: Sequence[Resource], group: str, version: str
) -> dict[str, Any] | None:
    """`/api/v1` or `/apis/<group>/<version>`, legacy; None when it is not served."""
    found = _of(resources, group, version)
    if not found:
        return None
    entries = []
    for resource in found:
        entries.append(_legacy_resource(resource))
        entries += [_legacy_subresource(resource.kind, name) for name in _subresources(resource)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": found[0].kind.api_version,
        "resources": entries,
    }


def _subresources(resource: Resource) -> list[str]:
    return [name for name in SUBRESOURCES if name in resource.kind.subresources]


def _legacy_resource(resource: Resource) -> dict[str, Any]:
    kind = resource.kind
    entry: dict[str, Any] = {
        "name": kind.plural,
        "singularName": kind.singular or kind.kind.lower(),
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(resource.verbs),
    }
    return entry | _names(kind)


def _names(kind: Kind) -> dict[str, Any]:
    names: dict[str, Any] = {}
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    if kind.categories:
        names["categories"] = list(kind.categories)
    return names


def _legacy_subresource(kind: Kind, name: str) -> dict[str, Any]:
    group, version, kind_name = _response_kind(kind, name)
    entry: dict[str, Any] = {
        "name": f"{kind.plural}/{name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": kind_name,
        "verbs": list(SUBRESOURCES[name][1]),
    }
    if group != kind.group:
        entry |= {"group": group, "version": version}
    return entry


def _response_kind(kind: Kind, subresource: str) -> tuple[str, str, str]:
    name = SUBRESOURCES[subresource][0] or kind.kind
    group, version = _FOREIGN_GROUPS.get(name, (kind.group, kind.version))
    return group, version, name


def build_aggregated(resources: Sequence[Resource], *, core: bool) -> dict[str, Any]:
    """`/api` (core) or `/apis` (the rest) as APIGroupDiscoveryList."""
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None},
            "versions": [
                {
                    "version": version,
                    "resources": [_aggregated_resource(r) for r in _of(resources, group, version)],
                    "freshness": "Current",
                }
                for version in versions
            ],
        }
        for group, versions in group_versions(resources).items()
        if (group == "") == core
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _aggregated_resource(resource: Resource) -> dict[str, Any]:
    kind = resource.kind
    entry: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular or kind.kind.lower(),
        "verbs": list(resource.verbs),
    }
    entry |= _names(kind)
    subresources = []
    for name in _subresources(resource):
        group, version, kind_name = _response_kind(kind, name)
        subresources.append(
            {
                "subresource": name,
                "responseKind": {"group": group, "version": version, "kind": kind_name},
                "verbs": list(SUBRESOURCES[name][1]),
            }
        )
    return entry | ({"subresources": subresources} if subresources else {})
