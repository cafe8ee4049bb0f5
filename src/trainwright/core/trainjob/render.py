"""Where each field of a TrainJob's JobSet comes from, for people who wonder.

Origins are found by building the object in stages and looking which stage changed a field: the
runtime's template, each manager's patch, each plugin, and the TrainJob's own fields.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trainwright.api.kinds import JOBSET
from trainwright.api.trainjob import parse_runtime, parse_trainjob
from trainwright.core.plugins.base import (
    BuildsObjects,
    EnforcesPolicy,
    ExplainsVariables,
    Job,
)
from trainwright.core.plugins.jobset.plugin import without_empty_maps
from trainwright.core.trainjob.build import build_job, build_podsets, policy_of, select_plugins
from trainwright.core.trainjob.patches import merge_metadata, merge_patches
from trainwright.core.trainjob.settings import DEFAULT_SETTINGS, TrainJobSettings
from trainwright.core.trainjob.steps import apply_steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from trainwright.base.objects import Json, Object
    from trainwright.core.trainjob.podset import PodSets

TRAINJOB_ORIGIN = "TrainJob"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """The JobSet, and the origin of each of its leaves."""

    jobset: Object
    origins: Mapping[str, str]
    """By JSON path such as `spec.replicatedJobs[name=node].replicas`: `runtime`, `patch MANAGER`,
    `plugin NAME` or `TrainJob`."""
    reasons: Mapping[str, str]
    """By JSON path: why a plugin chose the value, where it could have been another one."""


def render_trainjob(
    trainjob: Object, runtime: Object, settings: TrainJobSettings = DEFAULT_SETTINGS
) -> Rendered:
    """Build the JobSet of a TrainJob and say where each field comes from.

    Raises:
        InvalidObject: when one of the two cannot be read.
    """
    origins: dict[str, str] = {}
    before: Mapping[str, Json] = {}
    jobset: Object = {}
    for origin, jobset in _build_stages(trainjob, runtime, settings):
        leaves = dict(find_leaves(jobset))
        origins = {path: origins[path] for path in leaves if path in origins}
        for path, value in leaves.items():
            if path not in before or before[path] != value:
                origins[path] = origin
        before = leaves
    origins |= _find_fixed_origins(origins)
    reasons = _find_reasons(trainjob, runtime, settings, origins)
    return Rendered(jobset=jobset, origins=origins, reasons=reasons)


def _find_reasons(
    trainjob: Object, runtime: Object, settings: TrainJobSettings, origins: Mapping[str, str]
) -> dict[str, str]:
    job = build_job(parse_trainjob(trainjob), parse_runtime(runtime), settings=settings)
    podsets = build_podsets(job)
    return {
        path: reason
        for plugin in select_plugins(job)
        if isinstance(plugin, ExplainsVariables)
        for name, reason in plugin.explain_variables(policy_of(plugin, job), job, podsets).items()
        for path, origin in origins.items()
        if origin == f"plugin {plugin.name}" and path.endswith(f".env[name={name}].value")
    }


def _find_fixed_origins(paths: Iterable[str]) -> dict[str, str]:
    """Origins of the fields that no stage shows: those that make it this TrainJob's JobSet."""
    fixed = {
        "apiVersion": "plugin JobSet",
        "kind": "plugin JobSet",
        "spec.suspend": TRAINJOB_ORIGIN,
    }
    identity = ("metadata.name", "metadata.namespace", "metadata.ownerReferences")
    return {
        path: TRAINJOB_ORIGIN if path.startswith(identity) else fixed[path]
        for path in paths
        if path.startswith(identity) or path in fixed
    }


def find_leaves(value: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Every scalar (and empty map or list) with its path; items with a name are told apart by it."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from find_leaves(item, join_path(path, key))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from find_leaves(item, join_place(path, index, item))
    else:
        yield path, value


def join_path(path: str, key: str) -> str:
    """The path of a field."""
    return f"{path}.{key}" if path else key


def join_place(path: str, index: int, item: Json) -> str:
    """The path of a list's element: by its name where it has one."""
    named = isinstance(item, dict) and isinstance(item.get("name"), str)
    place = f"name={item['name']}" if named else str(index)
    return f"{path}[{place}]"


def _build_stages(
    trainjob: Object, runtime: Object, settings: TrainJobSettings
) -> Iterator[tuple[str, Object]]:
    """The JobSet as it stands after each origin had its say, in order."""
    view, source = parse_trainjob(trainjob), parse_runtime(runtime)
    job = build_job(view, source, settings=settings)
    yield "runtime", _bare_jobset(job, 0)
    for index, patch in enumerate(view.patches, start=1):
        yield f"patch {patch.manager}", _bare_jobset(job, index)
    unsaid = trainjob | {
        "spec": {k: v for k, v in trainjob["spec"].items() if k not in ("trainer", "initializer")}
    }
    bare = build_job(parse_trainjob(unsaid), source, settings=settings)
    yield "runtime", _build_jobset(bare, build_podsets(bare))
    podsets = build_podsets(job)
    yield TRAINJOB_ORIGIN, _build_jobset(job, _raw_podsets(job, podsets))
    for plugin in select_plugins(job):
        if isinstance(plugin, EnforcesPolicy):
            podsets = plugin.enforce_policy(policy_of(plugin, job), job, podsets)
            yield f"plugin {plugin.name}", _build_jobset(job, podsets)
    yield TRAINJOB_ORIGIN, _build_jobset(job, apply_steps(view, podsets))


def _raw_podsets(job: Job, podsets: PodSets) -> PodSets:
    """The PodSets with the TrainJob's own fields, before plugins add theirs."""
    trainer = job.trainjob.spec.trainer
    stepped = apply_steps(job.trainjob, podsets)
    if trainer is None or trainer.num_nodes is None:
        return stepped
    count = trainer.num_nodes
    return tuple(replace(p, count=count) if p.is_trainer else p for p in stepped)


def _bare_jobset(job: Job, patches: int) -> Object:
    """The template after its first `patches` patches, as the JobSet that it would be."""
    used = job.trainjob.patches[:patches]
    template = merge_patches(job.runtime.template_spec, used)
    metadata = merge_metadata(job.runtime.template_metadata, used)
    bare: Object = without_empty_maps({"metadata": metadata, "spec": template})
    return bare


def _build_jobset(job: Job, podsets: PodSets) -> Object:
    return next(
        obj
        for plugin in select_plugins(job)
        if isinstance(plugin, BuildsObjects)
        for obj in plugin.build_objects(job, podsets)
        if obj["kind"] == JOBSET.kind
    )
