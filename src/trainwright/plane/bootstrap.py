"""What a plane adds to a server's first objects: its namespace, the shipped runtimes, the version."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from trainwright import __version__
from trainwright.api.kinds import CONFIG_MAP, NAMESPACE, find_kind
from trainwright.api.wellknown import SYSTEM_NAMESPACE
from trainwright.base.errors import AlreadyExists
from trainwright.core.runtimes import load_shipped_runtimes
from trainwright.machinery.apply import apply_object

if TYPE_CHECKING:
    from trainwright.base.objects import Object
    from trainwright.machinery.api import Api

MANAGER = "trainwright"
PEER_VERSION = "v2.3.0"
"""What the public SDK reads as the control plane's version: the peer's that we behave as."""


async def ensure_first_objects(api: Api) -> None:
    """Make what is missing; runtimes are brought to this version's content."""
    namespace: Object = {
        "apiVersion": NAMESPACE.api_version,
        "kind": NAMESPACE.kind,
        "metadata": {"name": SYSTEM_NAMESPACE},
    }
    with suppress(AlreadyExists):
        await api.create(NAMESPACE, namespace, field_manager=MANAGER)
    for obj in (_build_public_config(), *load_shipped_runtimes()):
        kind = find_kind(obj["apiVersion"], obj["kind"])
        if kind is None:
            raise AssertionError(f"a shipped object of an unknown kind: {obj['kind']}")
        await apply_object(api, kind, obj, MANAGER)


def _build_public_config() -> Object:
    return {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": {"name": "kubeflow-trainer-public", "namespace": SYSTEM_NAMESPACE},
        "data": {"kubeflow_trainer_version": PEER_VERSION, "trainwright_version": __version__},
    }
