"""What a Configuration of `config.trainer.kubeflow.org/v1alpha1` says, with its defaults.

Source: Trainer 2.3; `metrics.auth` as later versions have it. Differs: durations of the leader
election that are left out have the defaults that the shipped file has, instead of none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

API_VERSION = "config.trainer.kubeflow.org/v1alpha1"
KIND = "Configuration"

TRAINJOB_STATUS_GATE = "TrainJobStatus"
GATES = {TRAINJOB_STATUS_GATE: False}
"""Every feature gate and whether it is on when nobody says; all of them are alpha."""

OFF = "0"
"""The address of an endpoint that is turned off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """Where the admission webhooks listen."""

    port: int = 9443
    host: str = ""
    """Empty: every address of the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings:
    """Where `/metrics` is, and who may read it."""

    bind_address: str = ":8443"
    secure_serving: bool = True
    auth: bool = False
    """Ask the API server who the reader is and whether it may `get /metrics`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSettings:
    """Where the probes are answered. The usual names `/healthz` and `/readyz` are so too, always."""

    bind_address: str = ":8081"
    readiness_name: str = "readyz"
    liveness_name: str = "healthz"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElectionSettings:
    """Which Lease lets one of several managers write."""

    enabled: bool = False
    name: str = "trainer.kubeflow.org"
    namespace: str = ""
    """Empty: the manager's own."""
    lease_duration_s: float = 15.0
    """How long others wait after the last renewal that they saw."""
    renew_deadline_s: float = 10.0
    """How long the holder goes on without a renewal."""
    retry_period_s: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateSettings:
    """The certificate of webhooks and status server."""

    manage: bool = True
    """Make and renew it here; else it must be in the folder already."""
    service_name: str = "kubeflow-trainer-controller-manager"
    secret_name: str = "kubeflow-trainer-webhook-cert"  # noqa: S105 - the name of one


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """How fast requests go to the API server."""

    qps: float = 50.0
    """Requests a second in the long run; 0 sets no limit."""
    burst: int = 100
    """Requests at once after a pause; 0 is read as 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusServerSettings:
    """Where trainings report their progress, and how fast that is written."""

    port: int = 10443
    qps: float = 50.0
    """Reports written a second, of all TrainJobs together."""
    burst: int = 100
    """Read and without effect: reports are written at an even pace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """How webhooks, metrics and status server speak TLS."""

    min_version: str = ""
    """`1.0` to `1.3`; empty: what the library thinks best."""
    ciphers: tuple[str, ...] = ()
    """Names as OpenSSL has them, for TLS 1.2 and earlier; empty: what the library thinks best."""
    next_protocols: tuple[str, ...] = ("http/1.1",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Everything that the file may say."""

    webhook: WebhookSettings = WebhookSettings()
    metrics: MetricsSettings = MetricsSettings()
    health: HealthSettings = HealthSettings()
    leader_election: LeaderElectionSettings = LeaderElectionSettings()
    concurrency: Mapping[str, int] = field(default_factory=dict)
    """Keys worked on at a time, by `Kind.group`."""
    certificates: CertificateSettings = CertificateSettings()
    client: ClientSettings = ClientSettings()
    status_server: StatusServerSettings = StatusServerSettings()
    gates: Mapping[str, bool] = field(default_factory=lambda: dict(GATES))
    tls: TlsSettings = TlsSettings()
