"""The way in: the schema of a kind, built on first use and kept."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

from trainwright.api.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainwright.api.kinds import Kind
    from trainwright.api.schemas.structural import Schema

_AREAS: Mapping[str, str] = {
    "": "core",
    "batch": "workloads",
    "events.k8s.io": "events",
    "coordination.k8s.io": "cluster",
    "scheduling.k8s.io": "cluster",
    "node.k8s.io": "cluster",
    "apiextensions.k8s.io": "cluster",
    "rbac.authorization.k8s.io": "rbac",
    "jobset.x-k8s.io": "workloads",
    "trainer.kubeflow.org": "workloads",
    "scheduling.x-k8s.io": "coscheduling",
    "scheduling.volcano.sh": "volcano",
}
"""Which module has the roots of an API group."""


def metadata_schema() -> Schema:
    """ObjectMeta in full, with managedFields and owner references; the metadata of every root."""
    from trainwright.api.schemas.metadata import OBJECT_META

    return OBJECT_META


@cache
def schema_of(kind: Kind) -> Schema | None:
    """The structural schema of a kind, root included; None for a kind that has none here.

    The value is shared by all callers and by other schemas: read it, never edit it.
    Source: Kubernetes 1.36, JobSet 0.12, Trainer 2.3 with the bounds that came right after it.
    """
    if kind not in KINDS:
        return None
    roots = cast(
        "Mapping[str, Schema]",
        import_module(f"trainwright.api.schemas.{_AREAS[kind.group]}").ROOTS,
    )
    return _build_root(kind, roots[kind.kind])


def _build_root(kind: Kind, own: Schema) -> Schema:
    gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    standing: dict[str, Schema] = {
        "apiVersion": {"type": "string", "description": "API group and version."},
        "kind": {"type": "string", "description": "Kind of the object."},
        "metadata": metadata_schema(),
    }
    return (
        {"type": "object"}
        | own
        | {
            "properties": standing | own.get("properties", {}),
            "x-kubernetes-group-version-kind": [gvk],
        }
    )
