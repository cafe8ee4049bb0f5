"""What a Job's podFailurePolicy and successPolicy say of its pods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainwright.base.objects import dig, name_of, namespace_of
from trainwright.core.job.indexes import parse_indexes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence, Set

    from trainwright.base.objects import Object, ObjectView

FAIL_JOB, FAIL_INDEX, IGNORE, COUNT = "FailJob", "FailIndex", "Ignore", "Count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The first rule that matches a failed pod; its action is Count when none does."""

    action: str = COUNT
    message: str = ""


def find_failure_match(job: ObjectView, pod: ObjectView) -> Match:
    """What the podFailurePolicy makes of a pod whose phase is Failed.

    Source: contract/jobset.md 2.7, messages 2.3.
    """
    rules: Sequence[Mapping[str, Any]] = dig(job, "spec", "podFailurePolicy", "rules", default=())
    place = f"{namespace_of(pod)}/{name_of(pod)}"
    for i, rule in enumerate(rules):
        suffix = f"matching {rule['action']} rule at index {i}"
        if (codes := rule.get("onExitCodes")) is not None:
            for name, code in _exit_codes(pod):
                if codes.get("containerName") in (None, name) and _is_code_matched(codes, code):
                    text = f"Container {name} for pod {place} failed with exit code {code} {suffix}"
                    return Match(action=rule["action"], message=text)
        for wanted in rule.get("onPodConditions") or ():
            if _has_condition(pod, wanted):
                text = f"Pod {place} has condition {wanted['type']} {suffix}"
                return Match(action=rule["action"], message=text)
    return Match()


def find_success_rule(job: ObjectView, completed: Set[int]) -> int | None:
    """The index of the first successPolicy rule that the completed indexes meet."""
    rules: Sequence[Mapping[str, Any]] = dig(job, "spec", "successPolicy", "rules", default=())
    for i, rule in enumerate(rules):
        wanted = rule.get("succeededIndexes")
        counted = completed if wanted is None else completed & parse_indexes(wanted)
        count = rule.get("succeededCount")
        if count is None:
            count = len(parse_indexes(wanted or ""))
        if len(counted) >= count > 0:
            return i
    return None


def _exit_codes(pod: ObjectView) -> Iterator[tuple[str, int]]:
    """Non-zero exit codes, those of main containers first."""
    for field in ("containerStatuses", "initContainerStatuses"):
        for status in dig(pod, "status", field, default=()):
            code = dig(status, "state", "terminated", "exitCode")
            if code:
                yield status["name"], code


def _is_code_matched(codes: Mapping[str, Any], code: int) -> bool:
    return bool((code in codes["values"]) == (codes["operator"] == "In"))


def _has_condition(pod: ObjectView, wanted: Mapping[str, Any]) -> bool:
    conditions: Sequence[Object] = dig(pod, "status", "conditions", default=())
    status = wanted.get("status") or "True"
    return any(c["type"] == wanted["type"] and c["status"] == status for c in conditions)
