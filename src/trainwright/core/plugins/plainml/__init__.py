"""The PlainML plugin: runtimes whose policy names no framework."""

from __future__ import annotations
