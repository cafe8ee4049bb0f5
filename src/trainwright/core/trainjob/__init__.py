"""What one TrainJob needs and what its status says: runtime, patches, PodSets, plan, admission.

Plugins (`core.plugins`) work on PodSets only; the JobSet is rendered from them in one place.
Nothing here reads a clock or a server: `Observed` comes in, a `Plan` goes out.
"""

from __future__ import annotations
