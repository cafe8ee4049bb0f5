"""JobSet: turns the finished PodSets into the one workload object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.api.kinds import JOBSET
from trainwright.api.wellknown import WORKING_DIR_ANNOTATION
from trainwright.base.objects import Json, Object, annotations_of, controller_reference, dig
from trainwright.core.plugins.jobset import names, validate
from trainwright.core.trainjob.steps import CONTAINER_OF_STEP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.base.errors import FieldError
    from trainwright.core.plugins.base import Job
    from trainwright.core.trainjob.podset import Container, PodSet, PodSets


@dataclass(frozen=True, slots=True)
class JobSetPlugin:
    """Serves every runtime: the template is always a JobSet."""

    name: str = "JobSet"
    policy_key: str = ""

    def applies_to(self, ml_policy: Object | None) -> bool:
        """Always."""
        del ml_policy
        return True

    def find_errors(self, policy: Object, job: Job, podsets: PodSets) -> Sequence[FieldError]:
        """Initializers that the runtime cannot run, and patches that patch nothing."""
        del policy, podsets
        return validate.find_errors(job)

    def build_objects(self, job: Job, podsets: PodSets) -> Sequence[Object]:
        """The JobSet of the TrainJob's name.

        Source: Trainer 2.3, JobSet builder. Differs: empty maps are left out, and pods are told
        the folder that their TrainJob was submitted from.
        """
        trainjob = job.trainjob
        by_name = {podset.name: podset for podset in podsets}
        told = {
            name: value
            for name, value in annotations_of(trainjob.obj).items()
            if name == WORKING_DIR_ANNOTATION
        }
        replicated = [
            _render_replicated_job(template, by_name[template["name"]], told)
            for template in job.template.get("replicatedJobs") or ()
        ]
        spec = {**job.template, "replicatedJobs": replicated}
        spec.pop("suspend", None)
        if trainjob.spec.suspend is not None:
            spec["suspend"] = trainjob.spec.suspend
        jobset: Object = {
            "apiVersion": JOBSET.api_version,
            "kind": JOBSET.kind,
            "metadata": {
                "name": trainjob.name,
                "namespace": trainjob.namespace,
                **job.metadata,
                "ownerReferences": [controller_reference(trainjob.obj)],
            },
            "spec": spec,
        }
        return (without_empty_maps(jobset),)


def without_empty_maps(value: Json) -> Json:
    """The value without nulls and without maps that mean nothing when they are empty (Q19)."""
    if isinstance(value, list):
        return [without_empty_maps(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: without_empty_maps(item) for key, item in value.items() if item is not None}
    return {
        key: item
        for key, item in kept.items()
        if not (key in names.OMITTED_WHEN_EMPTY and item == {})
    }


def _render_replicated_job(template: Object, podset: PodSet, told: Object) -> Object:
    job_template = template.get("template") or {}
    job_spec = job_template.get("spec") or {}
    pod_template = job_spec.get("template") or {}
    pod_spec = dict(pod_template.get("spec") or {})
    for key, containers in (
        ("initContainers", podset.init_containers),
        ("containers", podset.containers),
    ):
        if containers:
            pod_spec[key] = _render_containers(pod_spec.get(key) or [], containers)
    if podset.volumes:
        pod_spec["volumes"] = list(podset.volumes)
    pod_template = {**pod_template, "spec": pod_spec}
    if told:
        annotations = told | dig(pod_template, "metadata", "annotations", default={})
        metadata = {**(pod_template.get("metadata") or {}), "annotations": annotations}
        pod_template["metadata"] = metadata
    job_spec = {
        **job_spec,
        "parallelism": podset.count,
        "completions": podset.count,
        "template": pod_template,
    }
    rendered = {**template, "template": {**job_template, "spec": job_spec}}
    if podset.ancestor in CONTAINER_OF_STEP:
        rendered["replicas"] = podset.replicas
    return rendered


def _render_containers(
    templates: Sequence[Object], containers: Sequence[Container]
) -> list[Object]:
    """The template's containers with the PodSet's fields; containers it lacks are appended."""
    by_name = {template.get("name"): template for template in templates}
    return [_render_container(by_name.get(c.name) or {"name": c.name}, c) for c in containers]


def _render_container(template: Object, container: Container) -> Object:
    rendered = dict(template)
    for attribute, key in names.CONTAINER_FIELDS.items():
        value = getattr(container, attribute)
        if isinstance(value, tuple):
            value = list(value)
        if value:
            rendered[key] = value
        else:
            rendered.pop(key, None)
    return rendered
