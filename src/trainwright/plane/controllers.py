"""Which controllers a plane runs, by the names that `up --controllers` knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.api.kinds import CLUSTER_TRAINING_RUNTIME, JOBSET, TRAINING_RUNTIME
from trainwright.base.errors import LocalRunError
from trainwright.controllers.expiry import EventExpiryController
from trainwright.controllers.garbage import GarbageController
from trainwright.controllers.job import JobController
from trainwright.controllers.jobset import JobSetController
from trainwright.controllers.namespace import NamespaceController
from trainwright.controllers.quota import QuotaController
from trainwright.controllers.runtime import RuntimeController
from trainwright.controllers.scheduler import SchedulerController
from trainwright.controllers.trainjob import TrainJobController
from trainwright.core.admission import build_admission

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trainwright.api.kinds import Kind
    from trainwright.base.times import Clock
    from trainwright.controllers.reconciler import Controller
    from trainwright.core.admission import Admission
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


CONTROLLERS: Mapping[str, Entry] = {
    "trainjob": Entry(
        lambda s: TrainJobController(
            api=s.api, lister=s.lister, clock=s.clock, settings=s.trainjob_settings
        ),
        workers=4,
    ),
    "trainingruntime": Entry(lambda s: RuntimeController(TRAINING_RUNTIME, lister=s.lister)),
    "clustertrainingruntime": Entry(
        lambda s: RuntimeController(CLUSTER_TRAINING_RUNTIME, lister=s.lister)
    ),
    "jobset": Entry(lambda s: JobSetController(lister=s.lister, clock=s.clock), workers=4),
    "job": Entry(lambda s: JobController(lister=s.lister, clock=s.clock), workers=4),
    "scheduler": Entry(lambda s: SchedulerController(lister=s.lister, clock=s.clock)),
    "garbage": Entry(
        lambda s: GarbageController(api=s.api, lister=s.lister, kinds=s.kinds), workers=4
    ),
    "namespace": Entry(
        lambda s: NamespaceController(lister=s.lister, kinds=s.kinds, root_ca=s.root_ca)
    ),
    "quota": Entry(lambda s: QuotaController(lister=s.lister, kinds=s.kinds)),
    "expiry": Entry(lambda s: EventExpiryController(lister=s.lister, clock=s.clock)),
}


def choose_controllers(chosen: str) -> Sequence[str]:
    """Read `all`, names with commas, or names to leave out (`-job`).

    Raises:
        LocalRunError: naming the controllers that there are.
    """
    words = [word.strip() for word in chosen.split(",") if word.strip()]
    unknown = sorted({word.removeprefix("-") for word in words} - {*CONTROLLERS, "all"})
    if unknown:
        raise LocalRunError(
            f'--controllers "{chosen}": no controller is called {", ".join(unknown)}; '
            f"there are {', '.join(CONTROLLERS)}"
        )
    wanted = [word for word in words if not word.startswith("-")]
    left_out = {word[1:] for word in words if word.startswith("-")}
    if not wanted or "all" in wanted:
        wanted = list(CONTROLLERS)
    return [name for name in CONTROLLERS if name in wanted and name not in left_out]


def choose_admission(controllers: Sequence[str]) -> Mapping[Kind, Admission]:
    """The rules that hold when these controllers run.

    A cluster's JobSet controller brings its webhooks with it: without it JobSets are stored as sent.
    """
    left_out = () if "jobset" in controllers else (JOBSET,)
    return {kind: rules for kind, rules in build_admission().items() if kind not in left_out}
