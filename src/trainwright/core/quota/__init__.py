"""ResourceQuota and LimitRange: what a namespace may still create, and what its pods are given.

Pure: the server brings the quotas and what is used, under one lock with the write.
"""

from __future__ import annotations
