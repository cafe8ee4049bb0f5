"""All decisions, and no I/O: what objects a TrainJob needs, what its status says, what is refused.

Every function here takes values (objects, settings, the time) and returns values (plans, findings).
The shells in `controllers`, `server` and `node` observe, call in here, and carry the plan out.
"""

from __future__ import annotations
