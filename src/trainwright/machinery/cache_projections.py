"""What the controllers that run over HTTP read of each kind, and so what informers keep of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.conditions import TRAINJOB_COMPLETE, TRAINJOB_FAILED
from trainwright.api.kinds import (
    CLUSTER_TRAINING_RUNTIME,
    CONFIG_MAP,
    JOBSET,
    TRAINING_RUNTIME,
    TRAINJOB,
)
from trainwright.base.objects import ObjectView, is_condition_true
from trainwright.machinery.cache import Projection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainwright.api.kinds import Kind

WHOLE = Projection()
"""Of kinds that the table does not name: everything but managedFields."""


def _is_finished(trainjob: ObjectView) -> bool:
    return is_condition_true(trainjob, TRAINJOB_COMPLETE) or is_condition_true(
        trainjob, TRAINJOB_FAILED
    )


_METADATA = Projection(metadata_only=True)

PROJECTIONS: Mapping[Kind, Projection] = {
    TRAINJOB: Projection(resync=True, is_settled=_is_finished),
    # A JobSet's spec is most of it, and of that a plan looks only at whether it is suspended.
    JOBSET: Projection(spec_fields=frozenset({"suspend"})),
    # Snapshots are found and owned by metadata; their text is read live when it is needed.
    CONFIG_MAP: _METADATA,
    # Runtimes are only let go of here: finalizers. Plans read them live, once a job.
    TRAINING_RUNTIME: _METADATA,
    CLUSTER_TRAINING_RUNTIME: _METADATA,
}
