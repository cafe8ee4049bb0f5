"""Namespaces: what each has from the start, and how one goes with all that is in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.api.kinds import CONFIG_MAP, NAMESPACE, POD, SERVICE_ACCOUNT
from trainwright.api.wellknown import KUBERNETES_FINALIZER
from trainwright.base.objects import (
    dig,
    is_deleting,
    name_of,
    resource_version_of,
)
from trainwright.core.plan import Create, Patch, Plan, build_delete

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object

DEFAULT_SERVICE_ACCOUNT = "default"
ROOT_CA_CONFIG_MAP = "kube-root-ca.crt"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedNamespace:
    """A namespace and, while it goes, everything that is in it."""

    namespace: Object
    content: Sequence[tuple[Kind, Object]] = ()
    has_service_account: bool = True
    has_root_ca: bool = True


def plan_namespace(observed: ObservedNamespace, root_ca: str) -> Plan:
    """Fill a new namespace, or empty one that is being deleted.

    Args:
        observed: the namespace.
        root_ca: PEM text that pods trust the API server by.

    Source: contract/jobset.md 5.10: pods go first, then the rest, then the namespace itself.
    """
    if not is_deleting(observed.namespace):
        return _plan_filling(observed, root_ca)
    pods = [obj for kind, obj in observed.content if kind == POD]
    if pods:
        return Plan(actions=tuple(build_delete(POD, pod) for pod in pods if not is_deleting(pod)))
    rest = [build_delete(kind, obj) for kind, obj in observed.content if not is_deleting(obj)]
    if observed.content:
        return Plan(actions=tuple(rest))
    finalizers: list[str] = dig(observed.namespace, "spec", "finalizers", default=[])
    if KUBERNETES_FINALIZER not in finalizers:
        return Plan()
    kept = [finalizer for finalizer in finalizers if finalizer != KUBERNETES_FINALIZER]
    release = Patch(
        kind=NAMESPACE,
        namespace="",
        name=name_of(observed.namespace),
        patch={"spec": {"finalizers": kept}},
        resource_version=resource_version_of(observed.namespace),
        subresource="finalize",
    )
    return Plan(actions=(release,))


def _plan_filling(observed: ObservedNamespace, root_ca: str) -> Plan:
    namespace = name_of(observed.namespace)
    creates = []
    if not observed.has_service_account:
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": DEFAULT_SERVICE_ACCOUNT, "namespace": namespace},
        }
        creates.append(Create(kind=SERVICE_ACCOUNT, obj=account, may_exist=True))
    if not observed.has_root_ca:
        config_map = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": ROOT_CA_CONFIG_MAP, "namespace": namespace},
            "data": {"ca.crt": root_ca},
        }
        creates.append(Create(kind=CONFIG_MAP, obj=config_map, may_exist=True))
    return Plan(actions=tuple(creates))
