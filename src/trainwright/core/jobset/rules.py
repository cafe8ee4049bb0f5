"""What a new JobSet is refused for, beyond its schema.

Source: contract/jobset.md 1.3, in its order; every finding is collected.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from trainwright.base.errors import FieldError, Reason
from trainwright.base.objects import dig, name_of
from trainwright.core import names as forms
from trainwright.core.jobset.names import (
    build_coordinator_endpoint,
    build_job_name,
    replicas_of,
    replicated_jobs_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trainwright.base.objects import ObjectView

MAX_INT32 = 2**31 - 1
SAMPLE_SUFFIX = "abcde"
"""Stands for what a server appends to `generateName`, and a Job to the names of its pods."""
JOB_FAILURE_REASONS = (
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
)
_RULE_NAME = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")


def find_create_errors(jobset: ObjectView) -> list[FieldError]:
    """Every reason to refuse a new JobSet."""
    return [
        *_find_gate_errors(jobset),
        *_find_network_errors(jobset),
        *forms.find_managed_by_errors(dig(jobset, "spec", "managedBy"), "spec.managedBy"),
        *_find_replicated_job_errors(jobset),
        *_find_depends_on_errors(jobset),
        *_find_target_errors(jobset),
        *_find_failure_rule_errors(jobset),
        *_find_coordinator_errors(jobset),
        *_find_claim_errors(jobset),
    ]


def _find_gate_errors(jobset: ObjectView) -> Iterator[FieldError]:
    strategy = dig(jobset, "spec", "failurePolicy", "restartStrategy")
    if strategy == "InPlaceRestart":
        yield FieldError(
            Reason.INVALID,
            "spec.failurePolicy.restartStrategy",
            strategy,
            "InPlaceRestart is not served; use Recreate or BlockingRecreate",
        )


def _find_network_errors(jobset: ObjectView) -> Iterator[FieldError]:
    subdomain = dig(jobset, "spec", "network", "subdomain", default="")
    if not subdomain:
        return
    for find in (forms.find_subdomain_fault, forms.find_label_1035_fault):
        if fault := find(subdomain):
            yield FieldError(Reason.INVALID, "spec.network.subdomain", subdomain, fault)


def _find_replicated_job_errors(jobset: ObjectView) -> Iterator[FieldError]:
    jobset_name = name_of(jobset)
    if not jobset_name:
        generated = dig(jobset, "metadata", "generateName", default="")
        jobset_name = f"{generated}{SAMPLE_SUFFIX}"
    for i, job in enumerate(replicated_jobs_of(jobset)):
        path = f"spec.replicatedJobs[{i}]"
        spec = dig(job, "template", "spec", default={})
        replicas, parallelism = replicas_of(job), dig(spec, "parallelism", default=1)
        if replicas * parallelism > MAX_INT32:
            detail = f"replicas times parallelism must not exceed {MAX_INT32}"
            yield FieldError(Reason.INVALID, path, replicas * parallelism, detail)
        group = dig(job, "groupName", default="default")
        if fault := forms.find_label_1035_fault(group):
            yield FieldError(Reason.INVALID, f"{path}.groupName", group, fault)
        longest = build_job_name(jobset_name, job["name"], max(replicas - 1, 0))
        if fault := forms.find_label_1035_fault(longest):
            detail = f'the name of its last job, "{longest}", {fault}'
            yield FieldError(Reason.INVALID, f"{path}.name", job["name"], detail)
        completions = spec.get("completions")
        if spec.get("completionMode") == "Indexed" and completions is not None:
            pod = f"{longest}-{max(completions - 1, 0)}-{SAMPLE_SUFFIX}"
            if fault := forms.find_label_1035_fault(pod):
                detail = f'the name of its last pod, "{pod}", {fault}'
                yield FieldError(Reason.INVALID, f"{path}.name", job["name"], detail)


def _find_depends_on_errors(jobset: ObjectView) -> Iterator[FieldError]:
    """An item may name an earlier replicated job, or (upstream's quirk) its own."""
    earlier: set[str] = set()
    for i, job in enumerate(replicated_jobs_of(jobset)):
        path = f"spec.replicatedJobs[{i}].dependsOn"
        if i == 0 and job.get("dependsOn") is not None:
            detail = "the first replicated job must not depend on another"
            yield FieldError(Reason.INVALID, path, job["dependsOn"], detail)
            earlier.add(job["name"])
            continue
        earlier.add(job["name"])
        for k, dependency in enumerate(job.get("dependsOn") or ()):
            if dependency.get("name") not in earlier:
                detail = "must name a replicated job that comes before this one"
                yield FieldError(
                    Reason.INVALID, f"{path}[{k}].name", dependency.get("name"), detail
                )


def _find_target_errors(jobset: ObjectView) -> Iterator[FieldError]:
    path = "spec.successPolicy.targetReplicatedJobs"
    targets = dig(jobset, "spec", "successPolicy", "targetReplicatedJobs", default=())
    yield from _find_unknown(jobset, targets, path)
    for i, rule in enumerate(_rules(jobset)):
        path = f"spec.failurePolicy.rules[{i}].targetReplicatedJobs"
        yield from _find_unknown(jobset, rule.get("targetReplicatedJobs") or (), path)


def _find_unknown(jobset: ObjectView, targets: Sequence[str], path: str) -> Iterator[FieldError]:
    known = [job["name"] for job in replicated_jobs_of(jobset)]
    for target in targets:
        if target not in known:
            detail = f"must be one of the replicated jobs: {', '.join(known)}"
            yield FieldError(Reason.INVALID, path, target, detail)


def _find_failure_rule_errors(jobset: ObjectView) -> Iterator[FieldError]:
    seen: set[str] = set()
    for i, rule in enumerate(_rules(jobset)):
        path = f"spec.failurePolicy.rules[{i}]"
        name = rule.get("name") or ""
        if not 1 <= len(name) <= 128 or not _RULE_NAME.fullmatch(name):
            detail = (
                "must be 1 to 128 letters, digits, '_', ',' or ':', start with a letter "
                "and not end with ',' or ':'"
            )
            yield FieldError(Reason.INVALID, f"{path}.name", name, detail)
        if name in seen:
            yield FieldError(Reason.DUPLICATE, f"{path}.name", name)
        seen.add(name)
        if rule.get("action") in ("RestartJob", "RestartJobAndIgnoreMaxRestarts"):
            detail = "restarting single jobs is not served; use RestartJobSet"
            yield FieldError(Reason.INVALID, f"{path}.action", rule["action"], detail)
        for reason in rule.get("onJobFailureReasons") or ():
            if reason not in JOB_FAILURE_REASONS:
                detail = f"must be one of {', '.join(JOB_FAILURE_REASONS)}"
                yield FieldError(Reason.INVALID, f"{path}.onJobFailureReasons", reason, detail)


def _find_coordinator_errors(jobset: ObjectView) -> Iterator[FieldError]:
    coordinator = dig(jobset, "spec", "coordinator")
    if coordinator is None:
        return
    path, name = "spec.coordinator", coordinator.get("replicatedJob")
    job = next((job for job in replicated_jobs_of(jobset) if job["name"] == name), None)
    if job is None:
        yield from _find_unknown(jobset, (name,), f"{path}.replicatedJob")
        return
    spec = dig(job, "template", "spec", default={})
    completions = spec.get("completions")
    yield from _find_index_errors(coordinator, "jobIndex", replicas_of(job), path)
    if spec.get("completionMode") != "Indexed" or completions is None:
        detail = "the replicated job must be Indexed and say its completions"
        yield FieldError(Reason.INVALID, f"{path}.replicatedJob", name, detail)
    else:
        yield from _find_index_errors(coordinator, "podIndex", completions, path)
    endpoint = build_coordinator_endpoint(jobset) or ""
    if fault := forms.find_label_value_fault(endpoint):
        yield FieldError(Reason.INVALID, path, endpoint, f"the coordinator's address {fault}")


def _find_index_errors(
    coordinator: Mapping[str, Any], field: str, limit: int, path: str
) -> Iterator[FieldError]:
    index = int(coordinator.get(field) or 0)
    if not 0 <= index < limit:
        detail = f"must be at least 0 and below {limit}"
        yield FieldError(Reason.INVALID, f"{path}.{field}", index, detail)


def _find_claim_errors(jobset: ObjectView) -> Iterator[FieldError]:
    """Claim templates: unique names that make valid claim names, and that no volume takes."""
    seen: set[str] = set()
    for i, policy in enumerate(dig(jobset, "spec", "volumeClaimPolicies", default=())):
        for k, template in enumerate(policy.get("templates") or ()):
            path = f"spec.volumeClaimPolicies[{i}].templates[{k}].metadata.name"
            name = name_of(template)
            if name in seen:
                yield FieldError(Reason.DUPLICATE, path, name)
            seen.add(name)
            claim = f"{name}-{name_of(jobset)}"
            fault = forms.find_subdomain_fault(name) or (
                "makes a claim name of more than 63 characters"
                if len(claim) > forms.MAX_LABEL
                else None
            )
            if fault:
                yield FieldError(Reason.INVALID, path, name, fault)
            pods = [
                dig(job, "template", "spec", "template", "spec", default={})
                for job in replicated_jobs_of(jobset)
            ]
            if any(
                volume.get("name") == name for pod in pods for volume in pod.get("volumes") or ()
            ):
                detail = "a replicated job has a volume of this name already"
                yield FieldError(Reason.INVALID, path, name, detail)
            if not any(_mounts(pod, name) for pod in pods):
                detail = "no container mounts a volume of this name"
                yield FieldError(Reason.INVALID, path, name, detail)


def _mounts(pod: Mapping[str, Any], name: str) -> bool:
    containers = [*(pod.get("containers") or ()), *(pod.get("initContainers") or ())]
    return any(
        mount.get("name") == name
        for container in containers
        for mount in container.get("volumeMounts") or ()
    )


def _rules(jobset: ObjectView) -> Sequence[Mapping[str, Any]]:
    rules: Sequence[Mapping[str, Any]] = dig(jobset, "spec", "failurePolicy", "rules", default=())
    return rules
