"""Trainwright: launch and look after distributed training, from a laptop to Kubernetes."""

from __future__ import annotations

__version__ = "0.1.0"
