"""Admission of JobSets: what the mutating webhook fills in, and which rule set judges a write."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from trainwright.core.admission import Verdict
from trainwright.core.jobset.rules import find_create_errors
from trainwright.core.jobset.updates import find_update_errors

if TYPE_CHECKING:
    from trainwright.base.objects import Object
    from trainwright.core.admission import Request

WEBHOOK_NAME = "vjobset.kb.io"
"""The webhook of a cluster's JobSet controller.

Source: JobSet 0.12, which answers with an Invalid Status; earlier releases with Forbidden.
"""


def default_jobset(request: Request) -> Object:
    """The JobSet with the webhook's defaults; on create only.

    Source: contract/jobset.md 1.2 and 1.4: a replace that drops defaulted fields gets none back.
    """
    if request.old is not None or request.subresource:
        return request.new
    jobset = copy.deepcopy(request.new)
    spec = jobset.setdefault("spec", {})
    if spec.get("network") is None:
        spec["network"] = {}
    for field in ("enableDNSHostnames", "publishNotReadyAddresses"):
        if spec["network"].get(field) is None:
            spec["network"][field] = True
    if spec.get("successPolicy") is None:
        spec["successPolicy"] = {"operator": "All"}
    if spec.get("startupPolicy") is None:
        spec["startupPolicy"] = {"startupPolicyOrder": "AnyOrder"}
    for replicated_job in spec.get("replicatedJobs") or ():
        job = replicated_job.setdefault("template", {}).setdefault("spec", {})
        job.setdefault("completionMode", "Indexed")
        pod = job.setdefault("template", {}).setdefault("spec", {})
        pod.setdefault("restartPolicy", "OnFailure")
    for i, rule in enumerate((spec.get("failurePolicy") or {}).get("rules") or ()):
        rule["name"] = rule.get("name") or f"failurePolicyRule{i}"
    for policy in spec.get("volumeClaimPolicies") or ():
        if policy.get("retentionPolicy") is None:
            policy["retentionPolicy"] = {"whenDeleted": "Delete"}
    return jobset


def validate_jobset(request: Request) -> Verdict:
    """What the validating webhook says of a create or update."""
    if request.subresource:
        return Verdict()
    if request.old is not None:
        return Verdict(errors=find_update_errors(request.new, request.old))
    return Verdict(errors=find_create_errors(request.new), warnings=find_warnings(request.new))


def find_warnings(jobset: Object) -> tuple[str, ...]:
    """What is accepted, as upstream does, but cannot work."""
    spec = jobset.get("spec") or {}
    return tuple(
        f'spec.replicatedJobs[{i}].dependsOn: "{job["name"]}" depends on itself and never starts'
        for i, job in enumerate(spec.get("replicatedJobs") or ())
        if any(dependency["name"] == job["name"] for dependency in job.get("dependsOn") or ())
    )
