"""Structural schemas at work: pruning, defaulting, validation, CEL rules and printer columns.

Pure functions over a schema (an OpenAPI v3 document as JSON) and an object.
"""

from __future__ import annotations
