"""Which parts a manager has, by the words of `--serve`, and how each is made.

A new part is a row in `PARTS`: a function from the `Context` to its runnables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.base.errors import Unsupported
from trainwright.manager.reconcile import build_reconciling
from trainwright.manager.status import build_status
from trainwright.manager.webhooks import build_webhooks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trainwright.base.times import Clock
    from trainwright.machinery.client import HttpApi
    from trainwright.machinery.lease import WriteFence
    from trainwright.machinery.metrics import Metrics
    from trainwright.manager.runnable import Runnable
    from trainwright.manager.served import ServedKinds
    from trainwright.manager.settings import ManagerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What parts are made from."""

    api: HttpApi
    """For whoever needs the Lease: writes are refused while it is not held."""
    free_api: HttpApi
    """For whoever runs on every replica: reviews, certificates, progress."""
    settings: ManagerSettings
    clock: Clock
    metrics: Metrics
    fence: WriteFence
    served: ServedKinds


PARTS: Mapping[str, Callable[[Context], Sequence[Runnable]]] = {
    "reconcile": build_reconciling,
    "webhooks": build_webhooks,
    "status": build_status,
}
WORDS = ("reconcile", "webhooks", "status")
"""Every part that there will be; `all` means all of them."""
ALL = "all"


def choose_parts(word: str) -> Sequence[str]:
    """The parts that a word of `--serve` means.

    Raises:
        Unsupported: one of them is not there yet.
    """
    wanted = WORDS if word == ALL else (word,)
    missing = [part for part in wanted if part not in PARTS]
    if missing:
        raise Unsupported(
            f"--serve {word}: {' and '.join(missing)} cannot be served yet; "
            f"there is {', '.join(PARTS)}"
        )
    return wanted
