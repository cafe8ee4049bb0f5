"""Finding a TrainJob's runtime: the live one at first, its snapshot ever after."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from trainwright.api.kinds import CLUSTER_TRAINING_RUNTIME, CONFIG_MAP, TRAINING_RUNTIME, Kind
from trainwright.api.manifests import ManifestError, parse_yaml, render_yaml
from trainwright.api.trainjob import TrainingRuntime, TrainJob, parse_runtime
from trainwright.api.wellknown import SNAPSHOT_KEY, SNAPSHOT_SUFFIX
from trainwright.base.errors import InvalidObject, TrainwrightError
from trainwright.base.objects import Object, controller_reference, dig, is_controlled_by, name_of

if TYPE_CHECKING:
    from trainwright.api.trainjob import RuntimeRef

RUNTIME_KINDS = {
    f"{kind.kind}.{kind.group}": kind for kind in (TRAINING_RUNTIME, CLUSTER_TRAINING_RUNTIME)
}
"""Kinds that `spec.runtimeRef` may name, by `Kind.group`."""

REMEMBERED_SNAPSHOTS = 256
"""Parsed snapshots that are kept: jobs of one runtime have the same text."""

_SERVER_OWNED = frozenset({"managedFields"})
"""Metadata that a snapshot leaves out: it is large, and says nothing about the runtime."""


class SnapshotInvalid(TrainwrightError):
    """The snapshot ConfigMap is not one that this TrainJob took; the message says why."""


def find_runtime_kind(ref: RuntimeRef) -> Kind | None:
    """The kind that a runtimeRef names, if it is one that TrainJobs can use."""
    return RUNTIME_KINDS.get(ref.key)


def snapshot_name(trainjob_name: str) -> str:
    """Name of the ConfigMap that keeps the runtime a TrainJob was born with."""
    return trainjob_name + SNAPSHOT_SUFFIX


def build_snapshot(trainjob: TrainJob, runtime: TrainingRuntime) -> Object:
    """The ConfigMap that keeps `runtime`, whole, for `trainjob`.

    Source: Trainer 2.3, runtime snapshot: YAML with sorted keys, apiVersion and kind included.
    """
    kept = runtime.to_object()
    kept["metadata"] = {k: v for k, v in kept["metadata"].items() if k not in _SERVER_OWNED}
    return {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": {
            "name": snapshot_name(trainjob.name),
            "namespace": trainjob.namespace,
            "ownerReferences": [controller_reference(trainjob.obj)],
        },
        "data": {SNAPSHOT_KEY: render_yaml(kept, sort_keys=True)},
    }


def parse_snapshot(config_map: Object, trainjob: TrainJob) -> TrainingRuntime:
    """Read the runtime that a snapshot keeps.

    Raises:
        SnapshotInvalid: when the ConfigMap belongs to somebody else, lacks the runtime, or holds
            another runtime than `spec.runtimeRef` names.
    """
    where = f"ConfigMap {trainjob.namespace}/{name_of(config_map)}: "
    if not is_controlled_by(config_map, trainjob.obj):
        raise SnapshotInvalid(
            where + f"is not owned by TrainJob {trainjob.namespace}/{trainjob.name} "
            f"(uid {trainjob.uid}); delete or rename it"
        )
    text = dig(config_map, "data", SNAPSHOT_KEY)
    if not isinstance(text, str):
        raise SnapshotInvalid(where + f'has no data key "{SNAPSHOT_KEY}"; delete it')
    try:
        runtime = _read(text)
    except (ManifestError, InvalidObject) as error:
        raise SnapshotInvalid(where + f"does not hold a runtime: {error}") from error
    ref = trainjob.runtime_ref
    wanted = (ref.kind or runtime.kind.kind, ref.name)
    if (runtime.kind.kind, runtime.name) != wanted:
        raise SnapshotInvalid(
            where + f'holds {runtime.kind.kind} "{runtime.name}", '
            f'but spec.runtimeRef names {wanted[0]} "{wanted[1]}"'
        )
    return runtime


@lru_cache(maxsize=REMEMBERED_SNAPSHOTS)
def _read(text: str) -> TrainingRuntime:
    loaded = parse_yaml(text, "the snapshot")
    if not isinstance(loaded, dict):
        raise ManifestError("the snapshot is no mapping")
    return parse_runtime(loaded)
