"""What the JobSet controller decides: child Jobs, start-up order, success, failure, suspension.

One module per policy; `plan.py` runs them in upstream's order, which clients can observe. Nothing
here knows of TrainJobs, and nothing of how Jobs make their pods.
"""

from __future__ import annotations
