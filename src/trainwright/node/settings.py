"""What the node needs to know of its machine and its user."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainwright.api.wellknown import LAPTOP_NODE_NAME
from trainwright.base.objects import Object
from trainwright.core.journal import NO_JOURNAL, Journal

MANAGER = "trainwright-node"
"""Field manager of the node's writes, and its name in events."""

TokenIssuer = Callable[[Object, Mapping[str, object]], Awaitable[str]]
"""(pod, the volume's serviceAccountToken source) to a token bound to the pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """Settings of the laptop node."""

    home: Path
    """The installation's data folder; the node keeps to `pods/` and `ports/` in it."""
    node_name: str = LAPTOP_NODE_NAME
    python: Path = field(default_factory=lambda: Path(sys.executable))
    """The user's interpreter: its folder comes first in the pods' PATH."""
    backoff_base_s: float = 10.0
    """Wait before the second restart; the first is immediate, as the kubelet does it."""
    backoff_cap_s: float = 300.0
    backoff_forget_s: float = 600.0
    """A container that ran this long starts afresh."""
    max_log_bytes: int = 10 * 1024 * 1024
    """Of one log file; with `max_log_files` it bounds what an instance may fill."""
    max_log_files: int = 5
    max_ended_log_bytes: int = 2 * 1024**3
    """Of the logs of all pods that have ended; beyond it the oldest are removed."""
    log_trim_interval_s: float = 60.0
    """How often that is looked at, at most."""
    isolation: str = "auto"
    """`auto`: mounts of a pod's own where the system allows them; `none`: paths are rewritten;
    `namespace`: besides the mounts a network of the job's own, or no start."""
    use_cgroups: bool = True
    """Whether control groups are used where this user may make some; else children are walked."""
    host_ip: str = "127.0.0.1"
    first_port: int = 20000
    """Ports of jobs are taken from here up to `last_port`: below the kernel's ephemeral ones."""
    last_port: int = 29999
    api_host: str = ""
    """What pods see as KUBERNETES_SERVICE_HOST; empty leaves the service variables out."""
    api_port: int = 0
    issue_token: TokenIssuer | None = None
    """Makes service account tokens; None leaves token files out."""
    config_retry_s: float = 2.0
    """Wait before a missing ConfigMap or Secret is looked for again without a change seen."""
    journal: Journal = NO_JOURNAL
    """Told of starts, exits and failed probes."""
    resource_capacity: Mapping[str, str] = field(default_factory=dict)
    """Capacity beside cpu, memory and pods, such as `nvidia.com/gpu`."""

    @property
    def pods_folder(self) -> Path:
        """Where each pod has its folder, named by uid."""
        return self.home / "pods"
