"""What the runtime's template cannot do for a TrainJob."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.api import wellknown
from trainwright.base.errors import FieldError, Reason
from trainwright.base.objects import Object, dig
from trainwright.core.trainjob.steps import CONTAINER_OF_STEP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainwright.api.trainjob import RuntimePatch
    from trainwright.core.plugins.base import Job

PATCHES = "spec.runtimePatches"


def find_errors(job: Job) -> list[FieldError]:
    """Every finding of the JobSet plugin. Source: Trainer 2.3, JobSet validation."""
    return [*_find_initializer_errors(job), *_find_patch_errors(job)]


def _find_initializer_errors(job: Job) -> list[FieldError]:
    initializer = job.trainjob.spec.initializer
    if initializer is None:
        return []
    steps = []
    if initializer.dataset is not None:
        steps.append(wellknown.ANCESTOR_DATASET_INITIALIZER)
    if initializer.model is not None:
        steps.append(wellknown.ANCESTOR_MODEL_INITIALIZER)
    for step in steps:
        lack = _find_lack(job.template, step)
        if lack:
            ref = {"kind": job.runtime.kind.kind, "name": job.runtime.name}
            return [FieldError(Reason.INVALID, "spec.runtimeRef", ref, lack)]
    return []


def _find_lack(template: Object, step: str) -> str:
    """What keeps the template from running an initializer step; empty when nothing does."""
    jobs = {job.get("name"): job for job in template.get("replicatedJobs") or ()}
    if step not in jobs:
        return f'the runtime must have a job "{step}" for spec.initializer'
    containers = _pod_spec(jobs[step]).get("containers") or ()
    container = next((c for c in containers if c.get("name") == step), None)
    if container is None:
        return f'job "{step}" of the runtime must have a container "{step}"'
    mounts = {mount.get("name") for mount in container.get("volumeMounts") or ()}
    if wellknown.INITIALIZER_VOLUME not in mounts:
        return (
            f'container "{step}" of the runtime must mount a volume '
            f'"{wellknown.INITIALIZER_VOLUME}"'
        )
    return ""


def _find_patch_errors(job: Job) -> Iterator[FieldError]:
    """Differs from 2.3: names are looked up in the runtime as it is before the patches."""
    jobs = {j.get("name"): j for j in job.runtime.template_spec.get("replicatedJobs") or ()}
    for patch in job.trainjob.patches:
        for patched in _replicated_jobs(patch):
            name = patched.get("name")
            if name not in jobs:
                yield _unknown("job", name, list(jobs), patch)
                continue
            yield from _find_container_errors(patch, patched, jobs[name])


def _find_container_errors(
    patch: RuntimePatch, patched: Object, job: Object
) -> Iterator[FieldError]:
    reserved = set(CONTAINER_OF_STEP.values())
    for key, what in (("initContainers", "init container"), ("containers", "container")):
        known = [c.get("name") for c in _pod_spec(job).get(key) or ()]
        for container in _pod_spec(patched).get(key) or ():
            name = container.get("name")
            if name not in known:
                yield _unknown(f'{what} of job "{job.get("name")}"', name, known, patch)
            elif key == "containers" and name in reserved and container.get("env"):
                yield FieldError(
                    Reason.INVALID,
                    PATCHES,
                    name,
                    f'manager "{patch.manager}" may not set env of container "{name}"; '
                    "use spec.trainer.env or spec.initializer instead",
                )


def _unknown(what: str, name: object, known: Sequence[object], patch: RuntimePatch) -> FieldError:
    valid = ", ".join(f'"{item}"' for item in known) or "none"
    return FieldError(
        Reason.INVALID,
        PATCHES,
        name,
        f'manager "{patch.manager}" names no {what} of the runtime; valid names: {valid}',
    )


def _replicated_jobs(patch: RuntimePatch) -> Sequence[Object]:
    jobs: Sequence[Object] = dig(
        patch.training_runtime_spec, "template", "spec", "replicatedJobs", default=()
    )
    return jobs


def _pod_spec(job: Object) -> Object:
    spec: Object = dig(job, "template", "spec", "template", "spec", default={})
    return spec
