"""What the batch/v1 Job controller decides: pods to make and stop, their accounting, how a Job ends.

`plan.py` holds one pass. A pod counts only once its uid has been written down in the status and its
finalizer is seen to be gone, so a crash between any two writes neither loses nor doubles a count.
"""

from __future__ import annotations
