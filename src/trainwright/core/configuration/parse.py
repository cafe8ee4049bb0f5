"""From the YAML's content to a Configuration, strictly; what is odd but works becomes a warning."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainwright.api.kinds import TRAINER_KINDS
from trainwright.base.errors import FieldError, InvalidObject, Reason
from trainwright.core.configuration.ciphers import NOT_CHOSEN, SUITES
from trainwright.core.configuration.fields import Fields
from trainwright.core.configuration.gates import KNOWN, resolve_gates, unknown_gate
from trainwright.core.configuration.settings import (
    API_VERSION,
    KIND,
    OFF,
    CertificateSettings,
    ClientSettings,
    Configuration,
    HealthSettings,
    LeaderElectionSettings,
    MetricsSettings,
    StatusServerSettings,
    TlsSettings,
    WebhookSettings,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

JITTER = 1.2
"""Retries wait up to this much longer than the retry period."""
MAX_HOST_CHARACTERS = 253
MAX_PORT = 65535
TLS_VERSIONS = ("1.0", "1.1", "1.2", "1.3")
HTTP1 = "http/1.1"

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_ENDPOINT = re.compile(r"/?[A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A configuration, and what its reader should be told."""

    configuration: Configuration
    warnings: Sequence[str] = ()


def parse_configuration(
    document: Any, source: str, gates: Mapping[str, bool] | None = None
) -> Parsed:
    """Read a configuration file's content.

    Args:
        document: what the YAML holds; None, as for an empty file, is refused.
        source: what it is, for messages.
        gates: what the command line says of feature gates; it wins.

    Raises:
        InvalidObject: every finding, with its path.
    """
    errors: list[FieldError] = []
    warnings: list[str] = []
    if not isinstance(document, dict):
        raise InvalidObject(
            source,
            [FieldError(Reason.TYPE_INVALID, "", document, f"a map of kind {KIND} was wanted")],
        )
    fields = Fields("", document, errors)
    _check_kind(fields)
    configuration = Configuration(
        webhook=_parse_webhook(fields.map("webhook")),
        metrics=_parse_metrics(fields.map("metrics")),
        health=_parse_health(fields.map("health")),
        leader_election=_parse_leader_election(fields.map("leaderElection")),
        concurrency=_parse_controller(fields.map("controller")),
        certificates=_parse_certificates(fields.map("certManagement")),
        client=_parse_client(fields.map("clientConnection")),
        status_server=_parse_status_server(fields.map("statusServer")),
        gates=resolve_gates(_parse_gates(fields.map("featureGates")), gates or {}),
        tls=_parse_tls(fields.map("tls"), warnings),
    )
    fields.finish()
    if errors:
        raise InvalidObject(source, errors)
    return Parsed(configuration, warnings)


def split_address(address: str) -> tuple[str, int]:
    """Host ("" for every address) and port of `host:port`, `[v6]:port` or `:port`.

    Raises:
        ValueError: it is no such address.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > MAX_PORT:
        raise ValueError(f'"{address}" is no address')
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f'"{address}" is no address')
    return host, int(port)


def _check_kind(fields: Fields) -> None:
    for name, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if fields.text(name) != wanted:
            fields.refuse(name, f"must be {wanted}")


def _parse_webhook(fields: Fields) -> WebhookSettings:
    host = fields.text("host")
    if len(host) > MAX_HOST_CHARACTERS:
        fields.refuse("host", f"must be no longer than {MAX_HOST_CHARACTERS}", Reason.TOO_LONG)
    settings = WebhookSettings(port=_port(fields, WebhookSettings().port), host=host)
    fields.finish()
    return settings


def _port(fields: Fields, default: int) -> int:
    return fields.integer("port", default, least=1, most=MAX_PORT)


def _address(fields: Fields, name: str, default: str) -> str:
    address = fields.text(name) or default
    try:
        if address != OFF:
            split_address(address)
    except ValueError:
        fields.refuse(name, 'must be host:port, :port, or "0" to turn it off')
    return address


def _parse_metrics(fields: Fields) -> MetricsSettings:
    default = MetricsSettings()
    auth = fields.map("auth")
    settings = MetricsSettings(
        bind_address=_address(fields, "bindAddress", default.bind_address),
        secure_serving=fields.flag("secureServing", default.secure_serving),
        auth=auth.flag("enabled", default.auth),
    )
    if settings.auth and not settings.secure_serving:
        auth.refuse("enabled", "needs metrics.secureServing: tokens must not travel in the open")
    auth.finish()
    fields.finish()
    return settings


def _parse_health(fields: Fields) -> HealthSettings:
    default = HealthSettings()
    names = {}
    for name, usual in (
        ("readinessEndpointName", default.readiness_name),
        ("livenessEndpointName", default.liveness_name),
    ):
        names[name] = fields.text(name) or usual
        if not _ENDPOINT.fullmatch(names[name]):
            fields.refuse(name, "must be a path such as readyz")
    settings = HealthSettings(
        bind_address=_address(fields, "healthProbeBindAddress", default.bind_address),
        readiness_name=names["readinessEndpointName"].removeprefix("/"),
        liveness_name=names["livenessEndpointName"].removeprefix("/"),
    )
    if settings.readiness_name == settings.liveness_name:
        fields.refuse("livenessEndpointName", "must differ from readinessEndpointName")
    fields.finish()
    return settings


def _parse_leader_election(fields: Fields) -> LeaderElectionSettings:
    default = LeaderElectionSettings()
    if fields.text("resourceLock", "leases") not in {"leases", ""}:
        fields.refuse(
            "resourceLock", "must be leases, the only lock there is", Reason.NOT_SUPPORTED
        )
    settings = LeaderElectionSettings(
        enabled=fields.flag("leaderElect"),
        name=fields.text("resourceName") or default.name,
        namespace=fields.text("resourceNamespace"),
        lease_duration_s=fields.duration("leaseDuration", default.lease_duration_s),
        renew_deadline_s=fields.duration("renewDeadline", default.renew_deadline_s),
        retry_period_s=fields.duration("retryPeriod", default.retry_period_s),
    )
    for name, value in (
        ("resourceName", settings.name),
        ("resourceNamespace", settings.namespace),
    ):
        if value and not (len(value) <= MAX_HOST_CHARACTERS and _NAME.fullmatch(value)):
            fields.refuse(name, "must be a name of small letters, digits, - and .")
    if settings.lease_duration_s <= settings.renew_deadline_s:
        fields.refuse("leaseDuration", "must be longer than renewDeadline")
    if settings.renew_deadline_s <= settings.retry_period_s * JITTER:
        fields.refuse("renewDeadline", f"must be longer than {JITTER} times retryPeriod")
    fields.finish()
    return settings


def _parse_controller(fields: Fields) -> Mapping[str, int]:
    known = {kind.qualified_kind for kind in TRAINER_KINDS}
    concurrency = fields.map("groupKindConcurrency")
    found = concurrency.items(lambda row, name: row.integer(name, 1, least=1, most=1000))
    for name in found:
        if name not in known:
            concurrency.refuse(
                name, f"no kind of ours; there are {', '.join(sorted(known))}", Reason.NOT_SUPPORTED
            )
    fields.finish()
    return found


def _parse_certificates(fields: Fields) -> CertificateSettings:
    default = CertificateSettings()
    settings = CertificateSettings(
        manage=fields.flag("enable", default.manage),
        service_name=fields.text("webhookServiceName") or default.service_name,
        secret_name=fields.text("webhookSecretName") or default.secret_name,
    )
    for name, value in (
        ("webhookServiceName", settings.service_name),
        ("webhookSecretName", settings.secret_name),
    ):
        if not _NAME.fullmatch(value):
            fields.refuse(name, "must be a name of small letters, digits and -")
    fields.finish()
    return settings


def _parse_client(fields: Fields) -> ClientSettings:
    default = ClientSettings()
    settings = ClientSettings(
        qps=fields.number("qps", default.qps),
        burst=fields.integer("burst", default.burst, least=0),
    )
    fields.finish()
    return settings


def _parse_status_server(fields: Fields) -> StatusServerSettings:
    default = StatusServerSettings()
    settings = StatusServerSettings(
        port=_port(fields, default.port),
        qps=fields.number("qps", default.qps),
        burst=fields.integer("burst", default.burst, least=0),
    )
    fields.finish()
    return settings


def _parse_gates(fields: Fields) -> Mapping[str, bool]:
    found = fields.items(lambda row, name: row.flag(name))
    fields.errors.extend(unknown_gate(fields.path(n), n) for n in found if n not in KNOWN)
    return found


def _parse_tls(fields: Fields, warnings: list[str]) -> TlsSettings:
    version = fields.text("minVersion")
    if version and version not in TLS_VERSIONS:
        warnings.append(
            f'{fields.path("minVersion")}: "{version}" is no version of TLS (there are '
            f"{', '.join(TLS_VERSIONS)}); the default holds"
        )
        version = ""
    ciphers = []
    for name in fields.texts("cipherSuites"):
        suite = SUITES.get(name)
        if suite is not None:
            ciphers.append(suite.openssl)
        if suite is None and name not in NOT_CHOSEN:
            warnings.append(f'{fields.path("cipherSuites")}: "{name}" is unknown and left out')
        if suite is not None and not suite.safe:
            warnings.append(f'{fields.path("cipherSuites")}: "{name}" is not secure')
    protocols = fields.texts("nextProtos") or TlsSettings().next_protocols
    served = tuple(protocol for protocol in protocols if protocol == HTTP1)
    if not served:
        fields.refuse("nextProtos", f"must hold {HTTP1}: HTTP/2 is not spoken here")
    elif served != protocols:
        warnings.append(
            f"{fields.path('nextProtos')}: only {HTTP1} is spoken here, and HTTP/2 not offered"
        )
    fields.finish()
    return TlsSettings(min_version=version, ciphers=tuple(ciphers), next_protocols=served)
