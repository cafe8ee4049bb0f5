"""Admission of Jobs: what the API fills in, and which rule set judges a write."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from trainwright.api.wellknown import CONTROLLER_UID_LABEL, JOB_NAME_LABEL
from trainwright.base.objects import name_of, uid_of
from trainwright.core.admission import Verdict
from trainwright.core.job.rules import find_create_errors
from trainwright.core.job.updates import find_update_errors
from trainwright.core.pods.defaults import default_pod_template

if TYPE_CHECKING:
    from trainwright.base.objects import Object
    from trainwright.core.admission import Request

UNLIMITED = 2**31 - 1
OLD_UID_LABEL, OLD_NAME_LABEL = "controller-uid", "job-name"


def default_job(request: Request) -> Object:
    """The Job with the API's defaults; on create also its generated selector and labels.

    Source: contract/jobset.md 2.1. The Job's uid must have been assigned before.
    """
    if request.subresource:
        return request.new
    job = copy.deepcopy(request.new)
    spec = job.setdefault("spec", {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    for field, value in _defaults(spec).items():
        if spec.get(field) is None:
            spec[field] = value
    if request.old is None:
        job.pop("status", None)
        _generate_selector(job, spec)
        labels = (spec.get("template") or {}).get("metadata", {}).get("labels")
        if labels and not job["metadata"].get("labels"):
            job["metadata"]["labels"] = dict(labels)
    if isinstance(spec.get("template"), dict):
        spec["template"] = default_pod_template(spec["template"])
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for condition in rule.get("onPodConditions") or ():
            condition["status"] = condition.get("status") or "True"
    return job


def validate_job(request: Request) -> Verdict:
    """What is wrong with a Job that is created or updated."""
    if request.subresource:
        return Verdict()
    if request.old is not None:
        return Verdict(errors=find_update_errors(request.new, request.old))
    return Verdict(errors=find_create_errors(request.new))


def _defaults(spec: Object) -> Object:
    return {
        "parallelism": 1,
        "backoffLimit": 6 if spec.get("backoffLimitPerIndex") is None else UNLIMITED,
        "completionMode": "NonIndexed",
        "suspend": False,
        "manualSelector": False,
        "podReplacementPolicy": (
            "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed"
        ),
    }


def _generate_selector(job: Object, spec: Object) -> None:
    """Select by uid; the user's own values of these labels stay, to be refused by the rules."""
    if spec.get("manualSelector"):
        return
    metadata = spec.setdefault("template", {}).setdefault("metadata", None) or {}
    labels = dict(metadata.get("labels") or {})
    for key in (OLD_UID_LABEL, CONTROLLER_UID_LABEL):
        labels.setdefault(key, uid_of(job))
    for key in (OLD_NAME_LABEL, JOB_NAME_LABEL):
        labels.setdefault(key, name_of(job))
    spec["template"]["metadata"] = {**metadata, "labels": labels}
    if spec.get("selector") is None:
        spec["selector"] = {"matchLabels": {CONTROLLER_UID_LABEL: uid_of(job)}}
