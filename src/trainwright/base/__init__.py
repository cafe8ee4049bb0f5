"""Errors, settings, tables and protocols that every other package may use. No I/O, no clock."""

from __future__ import annotations
