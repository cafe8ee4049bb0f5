"""Thin shells around `core`: each follows some kinds, plans one key at a time, and writes nothing itself.

`reconciler` carries plans out; `trainjob` runs everywhere, the others only where no real Kubernetes
does their part.
"""

from __future__ import annotations
