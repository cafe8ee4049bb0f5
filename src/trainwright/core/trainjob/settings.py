"""What an installation may change about planning."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainJobSettings:
    """Switches of the TrainJob controller; the defaults are what the docs describe."""

    inject_without_trainer: bool = True
    """Give pods their rendezvous variables and port also when `spec.trainer` is absent, since a
    runtime with several nodes cannot meet otherwise. False is what upstream 2.3 does."""


DEFAULT_SETTINGS = TrainJobSettings()
