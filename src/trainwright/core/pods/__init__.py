"""Pods: what the API fills in, what it refuses, and which parts of a pod may change later.

Also used for the pod templates of Jobs. Running pods is the node's business.
"""

from __future__ import annotations
