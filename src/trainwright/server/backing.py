"""What the HTTP handlers work with: the registry, and the node's logs and commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainwright.base.times import Clock
    from trainwright.server.auth import Authenticator
    from trainwright.server.podexec import ExecProvider
    from trainwright.server.podlogs import LogProvider
    from trainwright.server.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Backing:
    """Everything behind the doors of one server."""

    registry: Registry
    authenticator: Authenticator
    clock: Clock
    logs: LogProvider | None = None
    """None: no node runs here, and `pods/log` answers 503."""
    execs: ExecProvider | None = None
    """None: `pods/exec` and `pods/attach` answer 503."""
