"""The JobSet plugin: the one renderer that knows JobSet."""

from __future__ import annotations
