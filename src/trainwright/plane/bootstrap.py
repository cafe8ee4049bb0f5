"""What a plane holds from its first start: namespaces, the shipped runtimes, the version."""

from __future__ import annotations

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
NAMESPACES = ("default", "kube-system", "kube-public", SYSTEM_NAMESPACE)
PEER_VERSION = "v2.3.0"
"""What the public SDK reads as the control plane's version: the peer's that we behave as."""


async def ensure_first_objects(api: Api) -> None:
    """Make what is missing; runtimes are brought to this version's content."""
    for name in NAMESPACES:
        namespace: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        try:
            await api.create(NAMESPACE, namespace, field_manager=MANAGER)
        except AlreadyExists:
            continue
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
