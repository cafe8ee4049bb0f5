"""The way into the API that a cluster gives every pod: its account's token, the authority, its namespace.

A cluster writes the volume into the pod when it is created; here the object stays as it was sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.base.objects import Object, ObjectView, dig
from trainwright.core.lifecycle.namespaces import DEFAULT_SERVICE_ACCOUNT, ROOT_CA_CONFIG_MAP

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
VOLUME = "kube-api-access"
TOKEN_LIFETIME_S = 3607


def name_of_account(pod: ObjectView) -> str:
    """The service account that a pod runs as."""
    return str(dig(pod, "spec", "serviceAccountName", default="") or DEFAULT_SERVICE_ACCOUNT)


def has_access(pod: ObjectView, account: ObjectView) -> bool:
    """Whether the token is to be mounted: the pod may say so, else its account."""
    for chosen in (
        dig(pod, "spec", "automountServiceAccountToken"),
        account.get("automountServiceAccountToken"),
    ):
        if chosen is not None:
            return bool(chosen)
    return True


def with_access(pod: ObjectView, account: ObjectView) -> Object:
    """The pod with the volume, mounted into each container that has nothing at its path.

    Source: contract jobset 3.8, service account token.
    """
    if not has_access(pod, account):
        return dict(pod)
    spec = dig(pod, "spec", default={})
    changed = {
        field: [_with_mount(container) for container in spec[field]]
        for field in ("containers", "initContainers")
        if field in spec
    }
    volumes = [*(spec.get("volumes") or []), _build_volume()]
    return {**pod, "spec": {**spec, **changed, "volumes": volumes}}


def _with_mount(container: Mapping[str, Any]) -> Mapping[str, Any]:
    mounts: Sequence[Mapping[str, Any]] = container.get("volumeMounts") or []
    if any(mount["mountPath"] == FOLDER for mount in mounts):
        return container
    mount = {"name": VOLUME, "mountPath": FOLDER, "readOnly": True}
    return {**container, "volumeMounts": [*mounts, mount]}


def _build_volume() -> Object:
    token = {"path": "token", "expirationSeconds": TOKEN_LIFETIME_S}
    authority = {"name": ROOT_CA_CONFIG_MAP, "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": token},
        {"configMap": authority},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": VOLUME, "projected": {"defaultMode": 0o644, "sources": sources}}
