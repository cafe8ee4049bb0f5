"""`spec.runtimePatches`: laying what several managers want over the runtime's template."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api.kinds import JOBSET
from trainwright.api.schemas.registry import schema_of
from trainwright.base.objects import Json, Object, dig
from trainwright.merge.strategic import apply_strategic_patch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.api.trainjob import RuntimePatch


def merge_metadata(metadata: Object, patches: Sequence[RuntimePatch]) -> Object:
    """Labels and annotations of the JobSet: the runtime's, then each patch's, later ones winning."""
    merged: Object = {}
    for part in ("labels", "annotations"):
        values = dict(metadata.get(part) or {})
        for patch in patches:
            values |= dig(patch.training_runtime_spec, "template", "metadata", part, default={})
        if values:
            merged[part] = values
    return merged


def merge_patches(template_spec: Object, patches: Sequence[RuntimePatch]) -> Object:
    """The JobSet spec after every patch, in list order, with its jobs in the runtime's order.

    Source: Trainer 2.3, newRuntimeInfo (a strategic merge patch over JobSet and Pod types).
    """
    schema = dig(schema_of(JOBSET), "properties", "spec", default={})
    merged = template_spec
    for patch in patches:
        wanted = dig(patch.training_runtime_spec, "template", "spec")
        if wanted:
            merged = apply_strategic_patch(merged, without_nulls(wanted), schema)
    return _restore_order(merged, template_spec)


def without_nulls(value: Json) -> Json:
    """The value without null fields: an absent field of a patch changes nothing."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def _restore_order(merged: Object, original: Object) -> Object:
    jobs = merged.get("replicatedJobs")
    if not jobs:
        return merged
    names = [job.get("name") for job in original.get("replicatedJobs") or ()]

    def place(job: Object) -> int:
        return names.index(job.get("name")) if job.get("name") in names else len(names)

    return {**merged, "replicatedJobs": sorted(jobs, key=place)}
