"""Which controllers a plane runs, by the names that `up --controllers` knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from trainwright.base.errors import LocalRunError
from trainwright.controllers.trainjob import TrainJobController

if TYPE_CHECKING:
    from trainwright.base.times import Clock
    from trainwright.controllers.reconciler import Controller
    from trainwright.machinery.api import Api, Lister

Factory = Callable[["Api", "Lister", "Clock"], "Controller"]

FACTORIES: Mapping[str, Factory] = {
    "trainjob": lambda api, lister, clock: TrainJobController(api=api, lister=lister, clock=clock),
}


def build_controllers(
    chosen: str, *, api: Api, lister: Lister, clock: Clock
) -> Sequence[Controller]:
    """The controllers of `--controllers`.

    Raises:
        LocalRunError: naming the controllers that there are.
    """
    return [FACTORIES[name](api, lister, clock) for name in choose_controllers(chosen)]


def choose_controllers(chosen: str) -> Sequence[str]:
    """Read `all`, names with commas, or names to leave out (`-job`)."""
    words = [word.strip() for word in chosen.split(",") if word.strip()]
    unknown = sorted({word.removeprefix("-") for word in words} - {*FACTORIES, "all"})
    if unknown:
        raise LocalRunError(
            f'--controllers "{chosen}": no controller is called {", ".join(unknown)}; '
            f"there are {', '.join(FACTORIES)}"
        )
    wanted = [word for word in words if not word.startswith("-")]
    left_out = {word[1:] for word in words if word.startswith("-")}
    if not wanted or "all" in wanted:
        wanted = list(FACTORIES)
    return [name for name in FACTORIES if name in wanted and name not in left_out]
