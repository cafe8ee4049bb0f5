"""Resources of a node: merging the TrainJob's into the runtime's, and counting what they give."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from trainwright.api import wellknown
from trainwright.merge.quantity import canonical_quantity, parse_quantity

if TYPE_CHECKING:
    from fractions import Fraction

    from trainwright.api.trainjob import Resources
    from trainwright.core.trainjob.podset import PodSets

GPU = "gpu"
"""A resource counts as a GPU when its lower-cased name contains this."""


def merge_resources(
    base: Mapping[str, object] | None, wanted: Resources
) -> Mapping[str, object] | None:
    """The runtime's resources with the TrainJob's over them, one resource name at a time.

    Source: Trainer 2.3, resourcesPerNode. Differs: `claims` are carried over, by name.
    """
    merged = dict(base or {})
    for part, values in (("limits", wanted.limits), ("requests", wanted.requests)):
        if values:
            before = merged.get(part)
            merged[part] = {**(before if isinstance(before, Mapping) else {}), **values}
    if wanted.claims:
        before = merged.get("claims")
        claims = list(before) if isinstance(before, list) else []
        names = {claim.get("name") for claim in wanted.claims}
        merged["claims"] = [c for c in claims if c.get("name") not in names] + wanted.claims
    return merged or None


def canonical_resources(resources: Mapping[str, object] | None) -> Mapping[str, object] | None:
    """The same resources with quantities spelled as Kubernetes does: `0.7` becomes `700m`."""
    if resources is None:
        return None
    result = dict(resources)
    for part in ("limits", "requests"):
        values = resources.get(part)
        if isinstance(values, Mapping):
            result[part] = {name: canonical_quantity(str(v)) for name, v in values.items()}
    return result


def find_node_resources(podsets: PodSets) -> Mapping[str, object]:
    """Resources of the first container `node` that has any, in a trainer job or a job `node`."""
    for podset in podsets:
        if podset.is_trainer or podset.name == wellknown.NODE:
            container = podset.container(wellknown.NODE)
            if container is not None and container.resources:
                return container.resources
    return {}


def count_gpus(resources: Mapping[str, object]) -> int:
    """GPUs of one pod, parts rounded up: requests count first, limits when requests have none."""
    for part in ("requests", "limits"):
        for name, amount in _amounts(resources, part).items():
            if GPU in name.lower() and amount > 0:
                return math.ceil(amount)
    return 0


def count_cpus(resources: Mapping[str, object]) -> int:
    """Whole CPU cores of one pod, rounded up; 0 when nothing is said. Requests count first."""
    for part in ("requests", "limits"):
        cores = _amounts(resources, part).get("cpu")
        if cores:
            return math.ceil(cores)
    return 0


def _amounts(resources: Mapping[str, object], part: str) -> Mapping[str, Fraction]:
    values = resources.get(part)
    if not isinstance(values, Mapping):
        return {}
    return {str(name): parse_quantity(str(value)) for name, value in values.items()}
