"""What an installation may change about planning."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusServer:
    """Where trainings report their progress."""

    url: str
    """`https://host:port`."""
    ca_pem: str
    """The certificate authority to trust it by; empty while it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainJobSettings:
    """Switches of the TrainJob controller; the defaults are what the docs describe."""

    inject_without_trainer: bool = True
    """Give pods their rendezvous variables and port also when `spec.trainer` is absent, since a
    runtime with several nodes cannot meet otherwise. False is what upstream 2.3 does."""
    status_server: StatusServer | None = None
    """Set when the feature gate TrainJobStatus is on."""


DEFAULT_SETTINGS = TrainJobSettings()
