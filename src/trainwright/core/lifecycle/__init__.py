"""What keeps a cluster tidy: garbage collection, namespaces, scheduling, expiry of events.

On a real cluster Kubernetes does all of this; the embedded plane runs these decisions instead.
"""

from __future__ import annotations
