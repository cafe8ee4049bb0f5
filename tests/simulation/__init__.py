"""The controllers on virtual time, over a store whose watches misbehave and with crashes anywhere."""

from __future__ import annotations
