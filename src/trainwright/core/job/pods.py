"""The pods that a Job makes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from trainwright.api.wellknown import COMPLETION_INDEX_LABEL, JOB_TRACKING_FINALIZER
from trainwright.base.objects import controller_reference, dig, name_of, namespace_of

if TYPE_CHECKING:
    from trainwright.base.objects import Object, ObjectView

INDEX_ENV = "JOB_COMPLETION_INDEX"
FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURE_COUNT = "batch.kubernetes.io/job-index-ignored-failure-count"


def build_pod_prefix(job: ObjectView, index: int) -> str:
    """What the random characters are appended to; `index` is -1 for NonIndexed Jobs."""
    return f"{name_of(job)}-" if index < 0 else f"{name_of(job)}-{index}-"


def build_pod(job: ObjectView, *, name: str, index: int, failures: int, ignored: int) -> Object:
    """One pod of the Job.

    Args:
        job: the owner.
        name: the pod's full name.
        index: its completion index, -1 for NonIndexed Jobs.
        failures: how often the index failed before (limit per index only).
        ignored: how often it failed without being counted.

    Source: contract/jobset.md 2.2.
    """
    template = dig(job, "spec", "template", default={})
    metadata: Object = copy.deepcopy(dict(template.get("metadata") or {}))
    metadata |= {
        "name": name,
        "generateName": build_pod_prefix(job, index),
        "namespace": namespace_of(job),
        "ownerReferences": [controller_reference(job)],
        "finalizers": [*(metadata.get("finalizers") or ()), JOB_TRACKING_FINALIZER],
    }
    spec: Object = copy.deepcopy(dict(template.get("spec") or {}))
    if index >= 0:
        _add_index(job, metadata, spec, index)
    if dig(job, "spec", "backoffLimitPerIndex") is not None:
        annotations = metadata.setdefault("annotations", {})
        annotations[FAILURE_COUNT] = str(failures)
        if ignored:
            annotations[IGNORED_FAILURE_COUNT] = str(ignored)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _add_index(job: ObjectView, metadata: Object, spec: Object, index: int) -> None:
    for field in ("labels", "annotations"):
        metadata[field] = {**(metadata.get(field) or {}), COMPLETION_INDEX_LABEL: str(index)}
    spec["hostname"] = f"{name_of(job)}-{index}"
    path = f"metadata.labels['{COMPLETION_INDEX_LABEL}']"
    variable: dict[str, Any] = {"name": INDEX_ENV, "valueFrom": {"fieldRef": {"fieldPath": path}}}
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        env = container.get("env") or []
        if all(entry.get("name") != INDEX_ENV for entry in env):
            container["env"] = [*env, copy.deepcopy(variable)]
