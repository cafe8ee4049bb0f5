"""Which controllers a plane runs, by the names that `up --controllers` knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.kinds import JOBSET
from trainwright.base.errors import LocalRunError
from trainwright.controllers.catalog import CLUSTER_CONTROLLERS, Entry
from trainwright.controllers.expiry import EventExpiryController
from trainwright.controllers.garbage import GarbageController
from trainwright.controllers.job import JobController
from trainwright.controllers.jobset import JobSetController
from trainwright.controllers.namespace import NamespaceController
from trainwright.controllers.quota import QuotaController
from trainwright.controllers.scheduler import SchedulerController
from trainwright.core.admission import build_admission

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainwright.api.kinds import Kind
    from trainwright.core.admission import Admission


CONTROLLERS: Mapping[str, Entry] = {
    **{kind.singular: entry for kind, entry in CLUSTER_CONTROLLERS.items()},
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
