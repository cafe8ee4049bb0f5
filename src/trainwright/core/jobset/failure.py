"""What happens when a Job of the JobSet has failed: fail, or restart everything."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainwright.api.conditions import FAILURE_POLICY_REASON_PREFIX, JOBSET_RESTARTING
from trainwright.base.objects import dig, find_condition, name_of
from trainwright.core.jobset.observed import replicated_job_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainwright.base.objects import Object, ObjectView
    from trainwright.core.jobset.status import StatusDraft

FAIL = "FailJobSet"
RESTART = "RestartJobSet"
RESTART_UNCOUNTED = "RestartJobSetAndIgnoreMaxRestarts"

_EVENTS = {
    RESTART: "RestartJobSetFailurePolicyAction",
    RESTART_UNCOUNTED: "RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The action that the failure policy takes, because of which Job and rule."""

    action: str
    job: Object
    rule: str | None
    """Name of the rule; None when no rule matched."""


def apply_failure_policy(jobset: ObjectView, failed: Sequence[Object], draft: StatusDraft) -> None:
    """Write into the draft what the failure policy makes of the failed Jobs.

    Source: contract/jobset.md 1.8. One action a pass, however many Jobs failed.
    """
    policy = dig(jobset, "spec", "failurePolicy")
    if policy is None:
        first = name_of(_earliest(failed))
        _fail(draft, "FailedJobs", "jobset failed due to one or more job failures", first)
        return
    decision = find_decision(policy, failed)
    first = name_of(decision.job)
    counted = int(draft.status.get("restartsCountTowardsMax") or 0)
    if decision.action == FAIL:
        reason = "FailJobSetFailurePolicyAction"
        _fail(draft, reason, f"jobset failed due to {FAIL} failure policy action", first)
    elif decision.action == RESTART and counted >= int(policy.get("maxRestarts") or 0):
        _fail(
            draft,
            "ReachedMaxRestarts",
            "jobset failed due to reaching max number of restarts",
            first,
        )
    else:
        _restart(draft, decision, first)


def find_decision(policy: Mapping[str, Any], failed: Sequence[Object]) -> Decision:
    """The first rule with a matching Job, and the earliest such Job; else a counted restart."""
    for rule in policy.get("rules") or ():
        matching = [job for job in failed if _matches(rule, job)]
        if matching:
            return Decision(action=rule["action"], job=_earliest(matching), rule=rule["name"])
    return Decision(action=RESTART, job=_earliest(failed), rule=None)


def _restart(draft: StatusDraft, decision: Decision, first: str) -> None:
    draft.status["restarts"] += 1
    if decision.action == RESTART:
        counted = int(draft.status.get("restartsCountTowardsMax") or 0)
        draft.status["restartsCountTowardsMax"] = counted + 1
    attempt = draft.status["restarts"]
    rule = decision.rule
    draft.set_condition(
        JOBSET_RESTARTING,
        True,
        "DefaultFailurePolicy" if rule is None else FAILURE_POLICY_REASON_PREFIX + rule,
        f"restarting jobset, attempt {attempt} (first failed job: {first})",
    )
    draft.add_event(
        "Warning",
        _EVENTS.get(decision.action, _EVENTS[RESTART_UNCOUNTED]),
        f"restarting jobset, attempt {attempt} (first failed job: {first})",
    )


def _fail(draft: StatusDraft, reason: str, message: str, first: str) -> None:
    draft.fail(reason, f"{message} (first failed job: {first})")


def _matches(rule: Mapping[str, Any], job: Object) -> bool:
    condition = find_condition(job, "Failed") or {}
    targets = rule.get("targetReplicatedJobs") or ()
    reasons = rule.get("onJobFailureReasons") or ()
    patterns = rule.get("onJobFailureMessagePatterns") or ()
    return (
        (not targets or replicated_job_of(job) in targets)
        and (not reasons or condition.get("reason") in reasons)
        and (not patterns or _any_found(patterns, condition.get("message") or ""))
    )


def _any_found(patterns: Sequence[str], message: str) -> bool:
    """Whether any pattern is found; one that cannot be read is skipped, as upstream does."""
    for pattern in patterns:
        try:
            if re.search(pattern, message):
                return True
        except re.error:
            continue
    return False


def _earliest(failed: Sequence[Object]) -> Object:
    def key(job: Object) -> tuple[str, str]:
        condition = find_condition(job, "Failed") or {}
        return str(condition.get("lastTransitionTime") or ""), name_of(job)

    return min(failed, key=key)
