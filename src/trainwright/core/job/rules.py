"""What a new Job is refused for, beyond its schema.

Source: contract/jobset.md 2.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.api.wellknown import CONTROLLER_UID_LABEL, JOB_NAME_LABEL
from trainwright.base.errors import FieldError, Reason
from trainwright.base.objects import dig, name_of, uid_of
from trainwright.core import names as forms
from trainwright.core.job.indexes import parse_indexes
from trainwright.core.pods.rules import find_pod_spec_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trainwright.base.objects import ObjectView

MAX_PARALLELISM = 100_000
MAX_RULES = 20
RESTART_POLICIES = ("OnFailure", "Never")
_COUNTS = (
    "parallelism",
    "completions",
    "backoffLimit",
    "activeDeadlineSeconds",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_INDEXED_ONLY = ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")


def find_create_errors(job: ObjectView) -> list[FieldError]:
    """Every reason to refuse a new Job."""
    template = dig(job, "spec", "template", "spec", default={})
    return [
        *_find_selector_errors(job),
        *find_spec_errors(job),
        *find_pod_spec_errors(template, "spec.template.spec", restart_policies=RESTART_POLICIES),
    ]


def find_spec_errors(job: ObjectView) -> list[FieldError]:
    """What is wrong with the Job's own numbers and policies."""
    spec = dig(job, "spec", default={})
    return [
        *_find_count_errors(spec),
        *_find_index_errors(job, spec),
        *_find_failure_policy_errors(spec),
        *_find_success_policy_errors(spec),
        *forms.find_managed_by_errors(spec.get("managedBy"), "spec.managedBy"),
    ]


def _find_selector_errors(job: ObjectView) -> Iterator[FieldError]:
    labels = dig(job, "spec", "template", "metadata", "labels", default={})
    selector = dig(job, "spec", "selector", "matchLabels", default={})
    path = "spec.template.metadata.labels"
    if not dig(job, "spec", "manualSelector", default=False):
        wanted = {
            "controller-uid": uid_of(job),
            CONTROLLER_UID_LABEL: uid_of(job),
            "job-name": name_of(job),
            JOB_NAME_LABEL: name_of(job),
        }
        for key, value in wanted.items():
            if labels.get(key) != value:
                yield FieldError(Reason.INVALID, path, labels, f'"{key}" must be "{value}"')
        if dict(selector) != {CONTROLLER_UID_LABEL: uid_of(job)}:
            detail = "is generated; leave it out, or set manualSelector"
            yield FieldError(Reason.INVALID, "spec.selector", selector, detail)
    elif any(labels.get(key) != value for key, value in selector.items()):
        yield FieldError(Reason.INVALID, path, labels, "must match spec.selector")


def _find_count_errors(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    for field in _COUNTS:
        value = spec.get(field)
        if value is not None and value < 0:
            detail = "must be greater than or equal to 0"
            yield FieldError(Reason.INVALID, f"spec.{field}", value, detail)


def _find_index_errors(job: ObjectView, spec: Mapping[str, Any]) -> Iterator[FieldError]:
    completions, parallelism = spec.get("completions"), spec.get("parallelism") or 0
    most = spec.get("maxFailedIndexes")
    if spec.get("completionMode") == "Indexed":
        if completions is None:
            detail = "must be set when completionMode is Indexed"
            yield FieldError(Reason.REQUIRED, "spec.completions", None, detail)
        if parallelism > MAX_PARALLELISM:
            detail = f"must be at most {MAX_PARALLELISM} when completionMode is Indexed"
            yield FieldError(Reason.INVALID, "spec.parallelism", parallelism, detail)
        if completions:
            hostname = f"{name_of(job)}-{completions - 1}"
            if fault := forms.find_label_fault(hostname):
                detail = f'the host name of its last pod, "{hostname}", {fault}'
                yield FieldError(Reason.INVALID, "metadata.name", name_of(job), detail)
    else:
        for field in _INDEXED_ONLY:
            if spec.get(field) is not None:
                detail = "requires completionMode Indexed"
                yield FieldError(Reason.INVALID, f"spec.{field}", spec[field], detail)
    if most is not None and spec.get("backoffLimitPerIndex") is None:
        detail = "must be set when maxFailedIndexes is"
        yield FieldError(Reason.REQUIRED, "spec.backoffLimitPerIndex", None, detail)
    if most is not None and completions is not None and most > completions:
        detail = "must be at most completions"
        yield FieldError(Reason.INVALID, "spec.maxFailedIndexes", most, detail)


def _find_failure_policy_errors(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    policy = spec.get("podFailurePolicy")
    if policy is None:
        return
    path, template = "spec.podFailurePolicy", dig(spec, "template", "spec", default={})
    if template.get("restartPolicy") != "Never":
        detail = "podFailurePolicy requires restartPolicy Never"
        value = template.get("restartPolicy")
        yield FieldError(Reason.INVALID, "spec.template.spec.restartPolicy", value, detail)
    if spec.get("podReplacementPolicy") != "Failed":
        detail = "must be Failed when podFailurePolicy is set"
        value = spec.get("podReplacementPolicy")
        yield FieldError(Reason.INVALID, "spec.podReplacementPolicy", value, detail)
    rules: Sequence[Mapping[str, Any]] = policy.get("rules") or ()
    if len(rules) > MAX_RULES:
        yield FieldError(Reason.TOO_MANY, f"{path}.rules", None, f"at most {MAX_RULES}")
    containers = {
        container.get("name")
        for field in ("containers", "initContainers")
        for container in template.get(field) or ()
    }
    for i, rule in enumerate(rules):
        yield from _find_failure_rule_errors(spec, rule, f"{path}.rules[{i}]", containers)


def _find_failure_rule_errors(
    spec: Mapping[str, Any], rule: Mapping[str, Any], path: str, containers: set[Any]
) -> Iterator[FieldError]:
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
    if (codes is None) == (not conditions):
        detail = "exactly one of onExitCodes and onPodConditions must be set"
        yield FieldError(Reason.INVALID, path, dict(rule), detail)
    if rule.get("action") == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        detail = "FailIndex requires backoffLimitPerIndex"
        yield FieldError(Reason.INVALID, f"{path}.action", "FailIndex", detail)
    if codes is None:
        return
    values = list(codes.get("values") or ())
    where = f"{path}.onExitCodes"
    if not 1 <= len(values) <= 255 or values != sorted(set(values)):
        detail = "must hold 1 to 255 exit codes, increasing and each once"
        yield FieldError(Reason.INVALID, f"{where}.values", values, detail)
    if codes.get("operator") == "In" and 0 in values:
        detail = "must not hold 0 with operator In"
        yield FieldError(Reason.INVALID, f"{where}.values", values, detail)
    name = codes.get("containerName")
    if name is not None and name not in containers:
        detail = "must be a container or initContainer of the pod template"
        yield FieldError(Reason.INVALID, f"{where}.containerName", name, detail)


def _find_success_policy_errors(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    policy = spec.get("successPolicy")
    if policy is None:
        return
    path, completions = "spec.successPolicy.rules", spec.get("completions") or 0
    rules: Sequence[Mapping[str, Any]] = policy.get("rules") or ()
    if not 1 <= len(rules) <= MAX_RULES:
        detail = f"must hold 1 to {MAX_RULES} rules"
        yield FieldError(Reason.INVALID, path, list(rules), detail)
    for i, rule in enumerate(rules):
        indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        if indexes is None and count is None:
            detail = "at least one of succeededIndexes and succeededCount must be set"
            yield FieldError(Reason.REQUIRED, f"{path}[{i}]", None, detail)
            continue
        try:
            listed = None if indexes is None else parse_indexes(indexes)
        except ValueError:
            listed = frozenset({-1})
        where = f"{path}[{i}].succeededIndexes"
        if listed is not None and not all(0 <= index < completions for index in listed):
            detail = f"must hold indexes from 0 to {completions - 1}, such as 0,2-4"
            yield FieldError(Reason.INVALID, where, indexes, detail)
        most = completions if listed is None else len(listed)
        if count is not None and not 0 < count <= most:
            detail = f"must be above 0 and at most {most}"
            yield FieldError(Reason.INVALID, f"{path}[{i}].succeededCount", count, detail)
