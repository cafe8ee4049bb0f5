"""What admission does with TrainJobs and runtimes beyond their schemas.

On a real cluster these rules run in webhooks of upstream's names, so a refusal is a 403 whose text
holds `path: Invalid value: …` for each finding.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainwright.api import wellknown
from trainwright.api.kinds import (
    CLUSTER_TRAINING_RUNTIME,
    CONFIG_MAP,
    JOBSET,
    TRAINING_RUNTIME,
    TRAINJOB,
    Kind,
)
from trainwright.api.trainjob import TrainingRuntime, TrainJob, parse_runtime, parse_trainjob
from trainwright.base.errors import FieldError, InvalidObject, Reason, TrainwrightError
from trainwright.base.objects import Object, annotations_of, dig, labels_of, name_of, namespace_of
from trainwright.base.times import render_time
from trainwright.core.admission import Admission, Request, Verdict
from trainwright.core.conversion.runtime import convert_runtime
from trainwright.core.conversion.trainjob import convert_trainjob, find_conversion_errors
from trainwright.core.names import SUBDOMAIN, find_env_name_fault
from trainwright.core.plugins import find_unsupported_policies
from trainwright.core.trainjob.build import (
    build_job,
    find_plugin_errors,
    find_plugin_warnings,
    plan_podsets,
)
from trainwright.core.trainjob.meaning import keep_unchanged
from trainwright.core.trainjob.naming import find_name_errors
from trainwright.core.trainjob.runtime import find_runtime_kind, parse_snapshot, snapshot_name
from trainwright.core.trainjob.settings import DEFAULT_SETTINGS
from trainwright.core.trainjob.steps import CONTAINER_OF_STEP

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TRAINJOB_WEBHOOK = "validator.trainjob.trainer.kubeflow.org"
TRAINING_RUNTIME_WEBHOOK = "validator.trainingruntime.trainer.kubeflow.org"
CLUSTER_TRAINING_RUNTIME_WEBHOOK = "validator.clustertrainingruntime.trainer.kubeflow.org"

DEPRECATED = "deprecated"
DISABLED = "disabled"
POLICY_URL = (
    "https://trainer.kubeflow.org/en/latest/operator-guides/runtime.html#runtime-deprecation-policy"
)
PLACE = "process"
"""The value of the annotation that says where pods run; `container` will be the other one."""

_MANAGER = re.compile(rf"{SUBDOMAIN}/[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def build_trainer_admission() -> Mapping[Kind, Admission]:
    """The rows of the admission table for the kinds of `trainer.kubeflow.org`."""
    return {
        TRAINJOB: Admission(
            default=default_trainjob, validate=validate_trainjob, webhook_name=TRAINJOB_WEBHOOK
        ),
        TRAINING_RUNTIME: Admission(
            default=default_runtime,
            validate=validate_runtime,
            webhook_name=TRAINING_RUNTIME_WEBHOOK,
        ),
        CLUSTER_TRAINING_RUNTIME: Admission(
            default=default_runtime,
            validate=validate_runtime,
            webhook_name=CLUSTER_TRAINING_RUNTIME_WEBHOOK,
        ),
    }


def default_trainjob(request: Request) -> Object:
    """The TrainJob in today's form, the `time` of each runtime patch filled in, kept or renewed.

    Source: Trainer 2.3, mutating webhook. Differs: fields of older Trainers are converted; what
    cannot be is left for `validate_trainjob` to refuse. Parts that are only written differently
    stay as they were, so that no rule takes that for a change.
    """
    if request.subresource:
        return request.new
    new = request.new
    if not find_conversion_errors(new, request.old):
        new, warnings = convert_trainjob(new, request.old)
        for warning in warnings:
            request.warn(warning)
    if request.old is not None:
        new = keep_unchanged(new, request.old)
    patches = dig(new, "spec", "runtimePatches")
    if not patches:
        return new
    before = {
        patch.get("manager"): patch
        for patch in dig(request.old, "spec", "runtimePatches", default=())
    }
    now = render_time(request.now)
    timed = [_set_time(patch, before.get(patch.get("manager")), now) for patch in patches]
    return {**new, "spec": {**new["spec"], "runtimePatches": timed}}


def default_runtime(request: Request) -> Object:
    """The runtime in today's form, with a warning for each field that older Trainers had."""
    if request.subresource:
        return request.new
    new, warnings = convert_runtime(request.new)
    for warning in warnings:
        request.warn(warning)
    return new


def _set_time(patch: Object, before: Object | None, now: str) -> Object:
    if before is None:
        return patch if patch.get("time") else patch | {"time": now}
    if _without_time(patch) != _without_time(before):
        return patch | {"time": now}
    restored = _without_time(patch)
    return restored | {"time": before["time"]} if before.get("time") else restored


def _without_time(patch: Object) -> Object:
    return {key: value for key, value in patch.items() if key != "time"}


def validate_trainjob(request: Request) -> Verdict:
    """Every finding about a TrainJob that its schema cannot say.

    Source: Trainer 2.3, validating webhook. Differs: updates are held against the snapshot when
    there is one; patches must name what the unpatched runtime has; names must fit into the names
    that JobSet makes from them.
    """
    if request.subresource or dig(request.new, "metadata", "deletionTimestamp"):
        return Verdict()
    unconverted = find_conversion_errors(request.new, request.old)
    if unconverted:
        return Verdict(errors=unconverted)
    try:
        trainjob = parse_trainjob(request.new)
    except InvalidObject as error:
        return Verdict(errors=error.errors)
    kind = find_runtime_kind(trainjob.runtime_ref)
    if kind is None:
        unknown = f"unsupported runtime: {trainjob.runtime_ref.key}"
        return Verdict(errors=[FieldError(Reason.FORBIDDEN, "", None, unknown)])
    errors = [*_find_own_errors(trainjob, request.new), *_find_patch_change_errors(request)]
    live = request.lookup(kind, _scope(kind, request.new), trainjob.runtime_ref.name)
    runtime = _find_snapshot(request, trainjob) or (parse_runtime(live) if live else None)
    if runtime is not None:
        errors += _find_runtime_errors(trainjob, runtime, request)
    elif request.old is None or request.old.get("spec") != request.new.get("spec"):
        errors.append(_missing_runtime(trainjob, kind))
    warnings = _find_deprecation(kind, live, trainjob)
    if runtime is not None and request.old is None and not errors:
        warnings += find_plugin_warnings(build_job(trainjob, runtime, settings=DEFAULT_SETTINGS))
    return Verdict(errors=errors, warnings=warnings)


def validate_runtime(request: Request) -> Verdict:
    """Every finding about a runtime that its schema cannot say.

    Source: Trainer 2.3. Differs: namespaced runtimes are validated on update too.
    """
    if _skips_validation(request.new) and (request.old is None or _skips_validation(request.old)):
        return Verdict()
    warnings = []
    is_new = request.old is None
    if is_new and request.kind == CLUSTER_TRAINING_RUNTIME and _is_deprecated(request.new):
        warnings.append(
            f'{request.kind.kind} "{name_of(request.new)}" is deprecated and will be removed; '
            f"see {POLICY_URL}"
        )
    spec = request.new.get("spec") or {}
    if is_new:
        unsupported = find_unsupported_policies(spec.get("mlPolicy"), spec.get("podGroupPolicy"))
        warnings += [
            f"spec.{path} is not supported yet: TrainJobs that name this runtime are refused"
            for path in unsupported
        ]
    errors = [*_find_step_errors(request.new), *_find_annotation_errors(request.new)]
    return Verdict(errors=errors, warnings=warnings)


def _find_step_errors(runtime: Object) -> Iterator[FieldError]:
    jobs = dig(runtime, "spec", "template", "spec", "replicatedJobs", default=())
    for index, job in enumerate(jobs):
        labels = dig(job, "template", "metadata", "labels", default={})
        step = labels.get(wellknown.ANCESTOR_LABEL)
        wanted = CONTAINER_OF_STEP.get(step)
        if wanted is None:
            continue
        path = f"spec.template.spec.replicatedJobs[{index}]"
        replicas = job.get("replicas")
        if replicas not in (None, 1):
            detail = f'must be 1 for step "{step}"; set mlPolicy.numNodes for more pods'
            yield FieldError(Reason.INVALID, f"{path}.replicas", replicas, detail)
        containers = dig(job, "template", "spec", "template", "spec", "containers", default=())
        names = [container.get("name") for container in containers]
        if wanted not in names:
            yield FieldError(
                Reason.INVALID,
                f"{path}.template.spec.template.spec.containers",
                names,
                f'must have a container "{wanted}" for step "{step}"',
            )


def _find_annotation_errors(obj: Object) -> Iterator[FieldError]:
    annotations = annotations_of(obj)
    ttl = annotations.get(wellknown.TTL_ANNOTATION)
    if ttl is not None and not (ttl.isascii() and ttl.isdigit()):
        yield _bad_annotation(wellknown.TTL_ANNOTATION, ttl, "must be whole seconds, 0 or more")
    place = annotations.get(wellknown.RUN_IN_ANNOTATION)
    if place is not None and place != PLACE:
        detail = f"must be {PLACE}; nothing else is supported yet"
        yield _bad_annotation(wellknown.RUN_IN_ANNOTATION, place, detail)
    for name in (wellknown.ELASTIC_NODES_ANNOTATION, wellknown.MPI_IMPLEMENTATION_ANNOTATION):
        if name in annotations:
            yield _bad_annotation(name, annotations[name], "is not supported yet; remove it")


def _bad_annotation(name: str, value: str, detail: str) -> FieldError:
    return FieldError(Reason.INVALID, f"metadata.annotations[{name}]", value, detail)


def _find_own_errors(trainjob: TrainJob, obj: Object) -> Iterator[FieldError]:
    """Findings that need no other object."""
    yield from _find_annotation_errors(obj)
    trainer = trainjob.spec.trainer
    if trainer is not None and trainer.num_nodes is not None and trainer.num_nodes < 0:
        yield FieldError(
            Reason.INVALID, "spec.trainer.numNodes", trainer.num_nodes, "must be 0 or more"
        )
    processes = trainer.num_proc_per_node if trainer is not None else None
    if processes is not None and processes < 1:
        yield FieldError(
            Reason.INVALID, "spec.trainer.numProcPerNode", processes, "must be 1 or more"
        )
    yield from _find_env_errors(obj)
    for patch in trainjob.patches:
        if not _MANAGER.fullmatch(patch.manager):
            yield FieldError(
                Reason.INVALID,
                "spec.runtimePatches.manager",
                patch.manager,
                "must be a domain and a path, such as acme.io/scheduler",
            )


def _find_env_errors(obj: Object) -> Iterator[FieldError]:
    """Names that no process can have. Differs from 2.3, where the Job of the pods is refused."""
    for part in ("trainer", "initializer.dataset", "initializer.model"):
        for index, variable in enumerate(dig(obj, "spec", *part.split("."), "env", default=())):
            name = variable.get("name") or ""
            fault = find_env_name_fault(name)
            if fault:
                yield FieldError(Reason.INVALID, f"spec.{part}.env[{index}].name", name, fault)


def _find_patch_change_errors(request: Request) -> Iterator[FieldError]:
    """Patches change only while the TrainJob is suspended and none of its pods is active."""
    old, new = request.old, request.new
    if old is None:
        return
    before, after = (dig(obj, "spec", "runtimePatches", default=[]) for obj in (old, new))
    if before == after:
        return
    path = "spec.runtimePatches"
    if not (dig(old, "spec", "suspend") or dig(new, "spec", "suspend")):
        detail = "may only change while the TrainJob is suspended; set spec.suspend to true first"
        yield FieldError(Reason.FORBIDDEN, path, None, detail)
        return
    jobset = request.lookup(JOBSET, namespace_of(new), name_of(new))
    for job in dig(jobset, "status", "replicatedJobsStatus", default=()):
        if (job.get("active") or 0) > 0:
            detail = f'may not change while job "{job.get("name")}" has active pods'
            yield FieldError(Reason.FORBIDDEN, path, None, detail)


def _find_runtime_errors(
    trainjob: TrainJob, runtime: TrainingRuntime, request: Request
) -> list[FieldError]:
    """Findings about the TrainJob and its runtime together."""
    unsupported = find_unsupported_policies(runtime.ml_policy, runtime.spec.pod_group_policy)
    if unsupported:
        ref = {"kind": runtime.kind.kind, "name": runtime.name}
        detail = f"{', '.join(unsupported)} of this runtime is not supported yet"
        return [FieldError(Reason.INVALID, "spec.runtimeRef", ref, detail)]
    try:
        job = build_job(trainjob, runtime, settings=DEFAULT_SETTINGS)
        errors = find_plugin_errors(job)
        if request.old is None and not errors and not trainjob.is_suspended:
            # Upstream admits every name of 63 characters. One that is suspended has time to say in
            # its conditions what JobSet refuses; one that would start at once is refused here.
            errors += find_name_errors(job, plan_podsets(job))
    except (TrainwrightError, ValueError) as error:
        ref = {"kind": runtime.kind.kind, "name": runtime.name}
        return [FieldError(Reason.INVALID, "spec.runtimeRef", ref, str(error))]
    return errors


def _find_snapshot(request: Request, trainjob: TrainJob) -> TrainingRuntime | None:
    """On update, the runtime that the TrainJob keeps; None when it keeps none (yet)."""
    if request.old is None:
        return None
    name = snapshot_name(trainjob.name)
    config_map = request.lookup(CONFIG_MAP, trainjob.namespace, name)
    if config_map is None:
        return None
    try:
        return parse_snapshot(config_map, trainjob)
    except TrainwrightError:
        return None


def _missing_runtime(trainjob: TrainJob, kind: Kind) -> FieldError:
    path = "spec.RuntimeRef" if kind == CLUSTER_TRAINING_RUNTIME else "spec.runtimeRef"
    ref = {"kind": kind.kind, "name": trainjob.runtime_ref.name}
    detail = f'{kind.kind} "{trainjob.runtime_ref.name}" not found; create it before the TrainJob'
    return FieldError(Reason.INVALID, path, ref, detail)


def _find_deprecation(kind: Kind, live: Object | None, trainjob: TrainJob) -> list[str]:
    if live is None or kind != CLUSTER_TRAINING_RUNTIME or not _is_deprecated(live):
        return []
    return [
        f'{kind.kind} "{trainjob.runtime_ref.name}" is deprecated and will be removed; '
        f"see {POLICY_URL}"
    ]


def _is_deprecated(runtime: Object) -> bool:
    return labels_of(runtime).get(wellknown.SUPPORT_LABEL) == DEPRECATED


def _skips_validation(runtime: Object) -> bool:
    return labels_of(runtime).get(wellknown.WEBHOOK_VALIDATION_LABEL) == DISABLED


def _scope(kind: Kind, trainjob: Object) -> str:
    return namespace_of(trainjob) if kind.namespaced else ""
