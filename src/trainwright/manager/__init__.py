"""The controllers as a citizen of a real cluster: one process with a Lease, probes and metrics.

Composes what lies below, as the plane does for a laptop. Each part is a `Runnable`; `parts.py` says
which parts `--serve` can name, and how each is made.
"""

from __future__ import annotations
