"""What a manager is started with: the command line, the configuration file, the machine."""

from __future__ import annotations

import secrets
import socket
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trainwright.api.manifests import parse_yaml
from trainwright.api.wellknown import SYSTEM_NAMESPACE
from trainwright.base.errors import TrainwrightError
from trainwright.core.configuration.gates import parse_gates, resolve_gates
from trainwright.core.configuration.parse import Parsed, parse_configuration
from trainwright.core.configuration.settings import Configuration
from trainwright.machinery.kubeconfig import find_own_namespace

if TYPE_CHECKING:
    from collections.abc import Sequence

CERTIFICATE_FOLDER = Path("/tmp/k8s-webhook-server/serving-certs")  # noqa: S108 - mounted there
"""Where Kubernetes' controllers expect the Secret with their certificate."""


class ConfigurationError(TrainwrightError, ValueError):
    """A configuration file that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerSettings:
    """Everything that a manager's parts are made from, besides the API server."""

    configuration: Configuration = field(default_factory=Configuration)
    namespaces: Sequence[str] = ()
    """The only ones to look at; none means all."""
    own_namespace: str = SYSTEM_NAMESPACE
    """Where the manager itself lives: its Lease, its Service, its Secret."""
    identity: str = ""
    """Names this process, as the Lease's holder."""
    certificate_folder: Path = CERTIFICATE_FOLDER
    webhook_cert_dir: Path | None = None
    """Where the webhooks' certificate is, when somebody else looks after it; else as configured."""
    status_host: str = "0.0.0.0"  # noqa: S104 - Pods come from everywhere in the cluster
    """The address that the status server listens on."""


def load_configuration(path: Path | None, feature_gates: str) -> Parsed:
    """Read the configuration file, or take the defaults when there is none.

    Raises:
        ConfigurationError: the file cannot be read.
        InvalidObject: what it says is wrong, with every finding.
        ManifestError: it is no YAML.
    """
    gates = parse_gates(feature_gates)
    if path is None:
        return Parsed(Configuration(gates=resolve_gates(gates)))
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"--config {path}: {error}") from error
    return parse_configuration(parse_yaml(text, str(path)), str(path), gates)


def with_webhook_address(found: Configuration, host: str, port: int | None) -> Configuration:
    """The configuration with the address that the command line gives, as far as it gives one."""
    webhook = replace(
        found.webhook, host=host or found.webhook.host, port=port or found.webhook.port
    )
    return replace(found, webhook=webhook)


def find_namespace_of_ours() -> str:
    """Where this manager lives: the Pod's namespace, else the one of usual installations."""
    return find_own_namespace() or SYSTEM_NAMESPACE


def build_identity() -> str:
    """A name that no other process has: the host's, and something random."""
    return f"{socket.gethostname()}_{secrets.token_hex(8)}"
