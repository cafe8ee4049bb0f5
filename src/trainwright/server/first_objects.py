"""What every store has from its first start: our CRDs, kept up to date, and the first namespaces."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from trainwright.api import kinds
from trainwright.api.crds import build_all_crds
from trainwright.base.objects import Object, name_of
from trainwright.server.requests import OWN_OPTIONS

if TYPE_CHECKING:
    from trainwright.base.objects import Json
    from trainwright.server.registry import Registry

FIRST_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


async def ensure_first_objects(registry: Registry) -> None:
    """Create what is missing; CRDs of an older release are replaced, labels and all else kept."""
    crds = (_ensure_crd(registry, crd) for crd in build_all_crds())
    namespaces = (_ensure_namespace(registry, name) for name in FIRST_NAMESPACES)
    await asyncio.gather(*crds, *namespaces)


async def _ensure_crd(registry: Registry, crd: Object) -> None:
    kind, name = kinds.CUSTOM_RESOURCE_DEFINITION, name_of(crd)
    there = registry.lookup(kind, "", name)
    if there is None:
        await registry.create(kind, "", crd, OWN_OPTIONS)
    elif not _includes(there["spec"], crd["spec"]):
        crd["metadata"]["resourceVersion"] = there["metadata"]["resourceVersion"]
        await registry.replace(kind, "", name, crd, OWN_OPTIONS)


async def _ensure_namespace(registry: Registry, name: str) -> None:
    if registry.lookup(kinds.NAMESPACE, "", name) is None:
        await registry.create(kinds.NAMESPACE, "", {"metadata": {"name": name}}, OWN_OPTIONS)


def _includes(value: Json, part: Json) -> bool:
    """Whether `value` is `part`, but for fields that defaults have added."""
    if isinstance(value, dict) and isinstance(part, dict):
        return all(key in value and _includes(value[key], part[key]) for key in part)
    return bool(value == part)
