"""How two documents become one: JSON, merge and strategic patches, server-side apply, quantities.

Pure functions over JSON values; they never edit their input.
"""

from __future__ import annotations
