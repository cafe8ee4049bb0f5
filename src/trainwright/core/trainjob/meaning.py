"""Whether a part of a TrainJob means what it meant, however it is written now.

Clients that write whole objects back fill in the API's defaults, spell quantities as they like and
drop what is empty. None of that is a change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.base.objects import Json, Object, dig
from trainwright.core.pods.defaults import default_container, default_pod_spec

if TYPE_CHECKING:
    from collections.abc import Callable

_NODE = "node"


def keep_unchanged(new: Object, old: Object) -> Object:
    """The TrainJob with every part that means what it meant written as it was.

    Args:
        new: as the client sent it, of the right JSON types.
        old: as stored.

    Looked at are `spec.trainer`, `spec.initializer` and each entry of `spec.runtimePatches` apart
    from its `time`: the parts that may not be changed at all, or only while suspended.
    """
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    kept: Object = {}
    for part, mean in (("trainer", _mean_trainer), ("initializer", _mean_initializer)):
        if part in spec and part in before and _is_same(spec[part], before[part], mean):
            kept[part] = before[part]
    if spec.get("runtimePatches"):
        entries = {patch.get("manager"): patch for patch in before.get("runtimePatches") or ()}
        kept["runtimePatches"] = [
            _keep_patch(patch, entries.get(patch.get("manager")))
            for patch in spec["runtimePatches"]
        ]
    return {**new, "spec": {**spec, **kept}} if kept else new


def _keep_patch(patch: Object, before: Object | None) -> Object:
    if before is None or not _is_same(patch, before, _mean_patch):
        return patch
    time = {"time": patch["time"]} if "time" in patch else {}
    return {key: value for key, value in before.items() if key != "time"} | time


def _is_same(new: Object, old: Object, mean: Callable[[Object], Object]) -> bool:
    return new == old or _without_nothing(mean(new)) == _without_nothing(mean(old))


def _mean_trainer(trainer: Object) -> Object:
    wanted = trainer.get("resourcesPerNode") or {}
    container = {"name": _NODE, "env": trainer.get("env"), "resources": wanted}
    meant = default_container(container, is_pod=False)
    return {**trainer, "env": meant.get("env"), "resourcesPerNode": meant["resources"]}


def _mean_initializer(initializer: Object) -> Object:
    return {
        step: {**fields, "env": default_container(fields, is_pod=False).get("env")}
        for step, fields in initializer.items()
        if isinstance(fields, dict)
    }


def _mean_patch(patch: Object) -> Object:
    template: Object = dig(patch, "trainingRuntimeSpec", "template", default={})
    jobs: list[Object] = dig(template, "spec", "replicatedJobs", default=[])
    return {
        "manager": patch.get("manager"),
        "metadata": template.get("metadata"),
        "replicatedJobs": [_mean_job(job) for job in jobs],
    }


def _mean_job(job: Object) -> Object:
    template: Object = job.get("template") or {}
    pod: Object = dig(template, "spec", "template", default={})
    return {
        "name": job.get("name"),
        "metadata": template.get("metadata"),
        "podMetadata": pod.get("metadata"),
        "podSpec": default_pod_spec(pod.get("spec") or {}),
    }


def _without_nothing(value: Json) -> Json:
    """The value without fields that say nothing: null, empty, and `readOnly: false`."""
    if isinstance(value, list):
        return [_without_nothing(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _without_nothing(item) for key, item in value.items()}
    return {
        key: item
        for key, item in kept.items()
        if item not in (None, "", {}, []) and not (key == "readOnly" and item is False)
    }
