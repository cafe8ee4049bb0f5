"""The Torch plugin: rendezvous variables for torchrun."""

from __future__ import annotations
