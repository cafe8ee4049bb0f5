"""The webhooks that a cluster calls, and the configuration objects that tell it so. Pure."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.api import kinds
from trainwright.api.kinds import Kind
from trainwright.api.wellknown import SYSTEM_NAMESPACE, WEBHOOK_VALIDATION_LABEL
from trainwright.base.objects import dig
from trainwright.core.trainjob.admission import (
    CLUSTER_TRAINING_RUNTIME_WEBHOOK,
    DISABLED,
    TRAINING_RUNTIME_WEBHOOK,
    TRAINJOB_WEBHOOK,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainwright.base.objects import Object


def _configuration(kind: str) -> Kind:
    group, plural = "admissionregistration.k8s.io", f"{kind.lower()}s"
    return Kind(group, "v1", kind, plural, namespaced=False, singular=kind.lower())


MUTATING_CONFIGURATION = _configuration("MutatingWebhookConfiguration")
VALIDATING_CONFIGURATION = _configuration("ValidatingWebhookConfiguration")
DEFAULTER = "defaulter.trainer.kubeflow.org"
VALIDATOR = "validator.trainer.kubeflow.org"
CONFIGURATIONS = ((MUTATING_CONFIGURATION, DEFAULTER), (VALIDATING_CONFIGURATION, VALIDATOR))
"""Kind and name of the objects that name our webhooks."""

TRAINJOB_DEFAULTER = "defaulter.trainjob.trainer.kubeflow.org"
SERVICE_PORT = 443
TIMEOUT_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """One address that a cluster's API server asks. Source: Trainer 2.3."""

    name: str
    kind: Kind
    mutates: bool = False
    can_be_disabled: bool = False
    """Whether a label of the object turns it off."""

    @property
    def path(self) -> str:
        """Where it is asked."""
        group = self.kind.group.replace(".", "-")
        verb = "mutate" if self.mutates else "validate"
        return f"/{verb}-{group}-{self.kind.version}-{self.kind.kind.lower()}"


WEBHOOKS = (
    Webhook(name=TRAINJOB_DEFAULTER, kind=kinds.TRAINJOB, mutates=True),
    Webhook(
        name=CLUSTER_TRAINING_RUNTIME_WEBHOOK,
        kind=kinds.CLUSTER_TRAINING_RUNTIME,
        can_be_disabled=True,
    ),
    Webhook(name=TRAINING_RUNTIME_WEBHOOK, kind=kinds.TRAINING_RUNTIME, can_be_disabled=True),
    Webhook(name=TRAINJOB_WEBHOOK, kind=kinds.TRAINJOB),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceClient:
    """The webhooks behind a Service of the cluster."""

    name: str
    namespace: str = SYSTEM_NAMESPACE
    port: int = SERVICE_PORT


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlClient:
    """The webhooks at an address such as `https://127.0.0.1:9443`, outside the cluster."""

    url: str


def build_webhook_configurations(
    client: ServiceClient | UrlClient,
    ca_bundle: bytes = b"",
    *,
    labels: Mapping[str, str] | None = None,
) -> tuple[Object, Object]:
    """The mutating and the validating configuration.

    Args:
        client: where the API server finds the webhooks.
        ca_bundle: PEM text of the authorities to trust; empty when it is injected later.
        labels: of both objects.
    """
    mutating, validating = (
        _build_configuration(kind, name, client, ca_bundle, labels) for kind, name in CONFIGURATIONS
    )
    return mutating, validating


def _build_configuration(
    kind: Kind,
    name: str,
    client: ServiceClient | UrlClient,
    ca_bundle: bytes,
    labels: Mapping[str, str] | None,
) -> Object:
    metadata: Object = {"name": name}
    if labels:
        metadata["labels"] = dict(labels)
    mutates = kind == MUTATING_CONFIGURATION
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": metadata,
        "webhooks": [
            _build_webhook(webhook, client, ca_bundle)
            for webhook in WEBHOOKS
            if webhook.mutates == mutates
        ],
    }


def _build_webhook(webhook: Webhook, client: ServiceClient | UrlClient, ca_bundle: bytes) -> Object:
    kind = webhook.kind
    built: Object = {
        "name": webhook.name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": _build_client(webhook, client, ca_bundle),
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_S,
        "rules": [
            {
                "apiGroups": [kind.group],
                "apiVersions": [kind.version],
                "operations": ["CREATE", "UPDATE"],
                "resources": [kind.plural],
            }
        ],
    }
    if webhook.can_be_disabled:
        expression = {"key": WEBHOOK_VALIDATION_LABEL, "operator": "NotIn", "values": [DISABLED]}
        built["objectSelector"] = {"matchExpressions": [expression]}
    return built


def _build_client(webhook: Webhook, client: ServiceClient | UrlClient, ca_bundle: bytes) -> Object:
    built: Object
    if isinstance(client, UrlClient):
        built = {"url": client.url.rstrip("/") + webhook.path}
    else:
        built = {
            "service": {
                "name": client.name,
                "namespace": client.namespace,
                "path": webhook.path,
                "port": client.port,
            }
        }
    if ca_bundle:
        built["caBundle"] = base64.b64encode(ca_bundle).decode()
    return built


def with_bundle(configuration: Object, ca_bundle: bytes) -> Object:
    """The configuration with the bundle in each of its webhooks, and nothing else changed.

    Returns:
        The same object when there is nothing to change.
    """
    wanted = base64.b64encode(ca_bundle).decode()
    webhooks = configuration.get("webhooks") or ()
    if all(dig(one, "clientConfig", "caBundle") == wanted for one in webhooks):
        return configuration
    changed = [
        {**one, "clientConfig": {**(one.get("clientConfig") or {}), "caBundle": wanted}}
        for one in webhooks
    ]
    return {**configuration, "webhooks": changed}
