"""How controllers are built, and those that run on a cluster as on a laptop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.api.kinds import CLUSTER_TRAINING_RUNTIME, TRAINING_RUNTIME, TRAINJOB
from trainwright.controllers.runtime import RuntimeController
from trainwright.controllers.trainjob import TrainJobController

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trainwright.api.kinds import Kind
    from trainwright.base.times import Clock
    from trainwright.controllers.reconciler import Controller
    from trainwright.core.trainjob.settings import TrainJobSettings
    from trainwright.machinery.api import Api, Lister


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What controllers are built from."""

    api: Api
    lister: Lister
    clock: Clock
    kinds: Callable[[], Sequence[Kind]]
    """The kinds that there are now, users' own among them."""
    root_ca: str
    """PEM text that Pods trust the API server by."""
    trainjob_settings: Callable[[], TrainJobSettings]


@dataclass(frozen=True, slots=True)
class Entry:
    """How a controller is built, and how many keys it works on at a time."""

    build: Callable[[Surroundings], Controller]
    workers: int = 1


CLUSTER_CONTROLLERS: Mapping[Kind, Entry] = {
    TRAINJOB: Entry(
        lambda s: TrainJobController(
            api=s.api, lister=s.lister, clock=s.clock, settings=s.trainjob_settings
        ),
        workers=4,
    ),
    TRAINING_RUNTIME: Entry(lambda s: RuntimeController(TRAINING_RUNTIME, lister=s.lister)),
    CLUSTER_TRAINING_RUNTIME: Entry(
        lambda s: RuntimeController(CLUSTER_TRAINING_RUNTIME, lister=s.lister)
    ),
}
"""The controllers of our own kinds; on a cluster others look after the rest."""
