"""The plugins: one folder each, with `plugin.py`, `validate.py`, `names.py`.

`PLUGINS` is the order in which they act; it decides the order of injected variables, so it is part
of the contract. An ML policy without a plugin is refused, never ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.core.plugins.jobset.plugin import JobSetPlugin
from trainwright.core.plugins.plainml.plugin import PlainMLPlugin
from trainwright.core.plugins.torch.plugin import TorchPlugin
from trainwright.core.plugins.trainjobstatus.plugin import TrainJobStatusPlugin

if TYPE_CHECKING:
    from trainwright.base.objects import Object
    from trainwright.core.plugins.base import Plugin

PLUGINS: tuple[Plugin, ...] = (
    TorchPlugin(),
    PlainMLPlugin(),
    TrainJobStatusPlugin(),
    JobSetPlugin(),
)

ML_POLICIES = ("torch", "mpi", "jax", "xgboost", "flux")
"""Every ML policy that a runtime's schema knows."""
POD_GROUP_POLICIES = ("coscheduling", "volcano")
"""Every gang policy that a runtime's schema knows."""


def find_unsupported_policies(ml_policy: Object | None, pod_group: Object | None) -> list[str]:
    """Paths below a runtime's `spec` that ask for a policy no plugin serves."""
    served = {plugin.policy_key for plugin in PLUGINS}
    found = [
        f"mlPolicy.{key}" for key in ML_POLICIES if key in (ml_policy or {}) and key not in served
    ]
    return found + [
        f"podGroupPolicy.{key}" for key in POD_GROUP_POLICIES if key in (pod_group or {})
    ]
