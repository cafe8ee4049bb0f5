"""The two runtime controllers: they only let go of runtimes that an older Trainer held back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.wellknown import TRAINER_MANAGER
from trainwright.controllers.reconciler import Outcome, Watch
from trainwright.core.lifecycle.runtimes import plan_runtime_release

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.api.kinds import Kind
    from trainwright.machinery.api import Lister
    from trainwright.machinery.workqueue import Key


class RuntimeController:
    """Reconciles the runtimes of one kind."""

    manager = TRAINER_MANAGER

    def __init__(self, kind: Kind, *, lister: Lister) -> None:
        self._kind = kind
        self._lister = lister
        self.name = f"trainer-{kind.kind.lower()}-controller"

    def watches(self) -> Sequence[Watch]:
        """The runtimes."""
        return (Watch(self._kind),)

    async def reconcile(self, key: Key) -> Outcome | None:
        """Look at one runtime's finalizers and plan."""
        runtime = self._lister.get(self._kind, key.namespace, key.name)
        if runtime is None:
            return None
        return Outcome(runtime, plan_runtime_release(self._kind, runtime))
