"""From a runtime and a TrainJob to PodSets and to the objects that run them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trainwright.api import wellknown
from trainwright.base.objects import Object, dig
from trainwright.core.plugins import PLUGINS
from trainwright.core.plugins.base import (
    BuildsObjects,
    EnforcesPolicy,
    FindsErrors,
    FindsWarnings,
    Job,
)
from trainwright.core.trainjob.patches import merge_metadata, merge_patches
from trainwright.core.trainjob.podset import Container, PodSet, PodSets
from trainwright.core.trainjob.resources import canonical_resources, merge_resources
from trainwright.core.trainjob.settings import DEFAULT_SETTINGS, TrainJobSettings
from trainwright.core.trainjob.steps import apply_steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainwright.api.trainjob import TrainingRuntime, TrainJob
    from trainwright.base.errors import FieldError
    from trainwright.core.plugins.base import Plugin


def build_job(
    trainjob: TrainJob,
    runtime: TrainingRuntime,
    *,
    settings: TrainJobSettings = DEFAULT_SETTINGS,
    with_patches: bool = True,
) -> Job:
    """What plugins may know: the TrainJob, its runtime, and the template after its patches."""
    patches = trainjob.patches if with_patches else ()
    template = merge_patches(runtime.template_spec, patches)
    return Job(
        trainjob=trainjob,
        runtime=runtime,
        settings=settings,
        subdomain=dig(template, "network", "subdomain", default=trainjob.name),
        metadata=merge_metadata(runtime.template_metadata, patches),
        template=template,
    )


def build_podsets(job: Job) -> PodSets:
    """One PodSet for each job of the template, with the TrainJob's resources merged in.

    Source: Trainer 2.3, newRuntimeInfo.
    """
    podsets = tuple(
        _read_podset(replicated, job.runtime.ml_policy)
        for replicated in job.template.get("replicatedJobs") or ()
    )
    trainer = job.trainjob.spec.trainer
    wanted = trainer.resources_per_node if trainer is not None else None
    if wanted is None or job.runtime.ml_policy is None:
        return podsets

    def merge(container: Container) -> Container:
        merged = canonical_resources(merge_resources(container.resources, wanted))
        return replace(container, resources=merged)

    return tuple(
        podset.with_container(wellknown.NODE, merge) if podset.is_trainer else podset
        for podset in podsets
    )


def plan_podsets(job: Job) -> PodSets:
    """The PodSets as every plugin and step wants them; what the job will really run."""
    podsets = build_podsets(job)
    for plugin in select_plugins(job):
        if isinstance(plugin, EnforcesPolicy):
            podsets = plugin.enforce_policy(policy_of(plugin, job), job, podsets)
    return apply_steps(job.trainjob, podsets)


def build_objects(job: Job) -> tuple[Object, ...]:
    """Every object of the job but its snapshot, in the order in which they are applied."""
    podsets = plan_podsets(job)
    return tuple(
        obj
        for plugin in select_plugins(job)
        if isinstance(plugin, BuildsObjects)
        for obj in plugin.build_objects(job, podsets)
    )


def find_plugin_errors(job: Job) -> list[FieldError]:
    """What the plugins find wrong, all of it. `job` is the one after the patches."""
    podsets = build_podsets(job)
    return [
        error
        for plugin in select_plugins(job)
        if isinstance(plugin, FindsErrors)
        for error in plugin.find_errors(policy_of(plugin, job), job, podsets)
    ]


def find_plugin_warnings(job: Job) -> list[str]:
    """What the plugins warn of. `job` is the one after the patches."""
    podsets = build_podsets(job)
    return [
        text
        for plugin in select_plugins(job)
        if isinstance(plugin, FindsWarnings)
        for text in plugin.find_warnings(policy_of(plugin, job), job, podsets)
    ]


def select_plugins(job: Job) -> Iterator[Plugin]:
    """The plugins that this job's runtime wants, in order."""
    return (plugin for plugin in PLUGINS if plugin.applies_to(job.runtime.ml_policy))


def policy_of(plugin: Plugin, job: Job) -> Object:
    """The plugin's own policy; empty when it needs none."""
    policy: Object = dig(job.runtime.ml_policy, plugin.policy_key, default={})
    return policy


def _read_podset(replicated: Object, ml_policy: Object | None) -> PodSet:
    labels = dig(replicated, "template", "metadata", "labels", default={})
    ancestor = labels.get(wellknown.ANCESTOR_LABEL, "")
    job_spec = dig(replicated, "template", "spec", default={})
    pod_spec = dig(job_spec, "template", "spec", default={})
    count = job_spec.get("parallelism")
    if ancestor == wellknown.ANCESTOR_TRAINER and ml_policy is not None:
        count = ml_policy.get("numNodes")
    replicas = replicated.get("replicas")
    return PodSet(
        name=replicated.get("name", ""),
        ancestor=ancestor,
        count=max(1, 1 if count is None else count),
        replicas=1 if replicas is None else replicas,
        containers=tuple(map(_read_container, pod_spec.get("containers") or ())),
        init_containers=tuple(map(_read_container, pod_spec.get("initContainers") or ())),
        volumes=tuple(pod_spec.get("volumes") or ()),
    )


def _read_container(container: Object) -> Container:
    return Container(
        name=container.get("name", ""),
        image=container.get("image") or "",
        command=tuple(container.get("command") or ()),
        args=tuple(container.get("args") or ()),
        env=tuple(container.get("env") or ()),
        env_from=tuple(container.get("envFrom") or ()),
        ports=tuple(container.get("ports") or ()),
        volume_mounts=tuple(container.get("volumeMounts") or ()),
        resources=canonical_resources(container.get("resources")),
    )
