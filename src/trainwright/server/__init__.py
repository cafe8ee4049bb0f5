"""The embedded API server: one store on SQLite, the write pipeline over it, and HTTP on top.

`store` keeps objects, `watchhub` tells of changes, `registry` is the one way to read and write them
(admission, patches, managed fields, finalizers); `inprocess` and the HTTP modules are thin doors to
the registry. Nothing here decides what a TrainJob, JobSet or Job means: that is `core`.
"""

from __future__ import annotations
