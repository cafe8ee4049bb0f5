"""The objects that a JobSet makes: one Job per replica and a headless Service."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from trainwright.api.kinds import JOB
from trainwright.api.wellknown import (
    JOB_INDEX_LABEL,
    JOBSET_NAME_LABEL,
    JOBSET_UID_LABEL,
    REPLICATED_JOB_NAME_LABEL,
    REPLICATED_JOB_REPLICAS_LABEL,
    RESTART_ATTEMPT_LABEL,
)
from trainwright.base.objects import (
    annotations_of,
    controller_reference,
    dig,
    name_of,
    namespace_of,
    uid_of,
)
from trainwright.core.jobset import names
from trainwright.core.jobset.observed import restarts_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainwright.base.objects import Object, ObjectView


def build_job(jobset: ObjectView, replicated_job: Mapping[str, Any], index: int) -> Object:
    """The Job of one replica.

    Source: contract/jobset.md 1.5: the same set of keys on Job and pod template, as label and as
    annotation; `suspend` always explicit; the subdomain overrides the user's.
    """
    template: Mapping[str, Any] = replicated_job["template"]
    marks = build_marks(jobset, replicated_job, index)
    extra = _exclusive_placement(jobset, template)
    spec: Object = copy.deepcopy(dig(template, "spec", default={}))
    spec["suspend"] = bool(dig(jobset, "spec", "suspend", default=False))
    pod_template: Object = spec.setdefault("template", {})
    pod_template["metadata"] = _merge_marks(pod_template.get("metadata"), marks, extra)
    if names.has_dns_hostnames(jobset):
        pod_template.setdefault("spec", {})["subdomain"] = names.find_subdomain(jobset)
    _append_claims(jobset, pod_template)
    metadata = _merge_marks(template.get("metadata"), marks, extra)
    metadata |= {
        "name": names.build_job_name(name_of(jobset), replicated_job["name"], index),
        "namespace": namespace_of(jobset),
        "ownerReferences": [controller_reference(jobset)],
    }
    return {"apiVersion": JOB.api_version, "kind": JOB.kind, "metadata": metadata, "spec": spec}


def build_marks(
    jobset: ObjectView, replicated_job: Mapping[str, Any], index: int
) -> dict[str, str]:
    """What is written on a Job and its pods both as labels and as annotations."""
    name, replicas = replicated_job["name"], names.replicas_of(replicated_job)
    group = dig(replicated_job, "groupName", default="default")
    everybody = names.replicated_jobs_of(jobset)
    position = next(i for i, other in enumerate(everybody) if other["name"] == name)
    earlier = everybody[:position]
    job_name = names.build_job_name(name_of(jobset), name, index)
    marks = {
        JOBSET_NAME_LABEL: name_of(jobset),
        JOBSET_UID_LABEL: uid_of(jobset),
        REPLICATED_JOB_NAME_LABEL: name,
        REPLICATED_JOB_REPLICAS_LABEL: str(replicas),
        names.GLOBAL_REPLICAS: str(sum(map(names.replicas_of, everybody))),
        JOB_INDEX_LABEL: str(index),
        names.JOB_GLOBAL_INDEX: str(sum(map(names.replicas_of, earlier)) + index),
        names.JOB_KEY: names.build_job_key(namespace_of(jobset), job_name),
        RESTART_ATTEMPT_LABEL: str(restarts_of(jobset)),
        names.GROUP_NAME: group,
        names.GROUP_REPLICAS: str(sum(_group_replicas(everybody, group))),
        names.JOB_GROUP_INDEX: str(sum(_group_replicas(earlier, group)) + index),
    }
    endpoint = names.build_coordinator_endpoint(jobset)
    return marks if endpoint is None else marks | {names.COORDINATOR: endpoint}


def build_service(jobset: ObjectView) -> Object:
    """The headless Service that gives the pods their names."""
    publish = dig(jobset, "spec", "network", "publishNotReadyAddresses", default=True)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": names.find_subdomain(jobset),
            "namespace": namespace_of(jobset),
            "ownerReferences": [controller_reference(jobset)],
        },
        "spec": {
            "clusterIP": "None",
            "selector": {JOBSET_NAME_LABEL: name_of(jobset)},
            "publishNotReadyAddresses": publish,
        },
    }


def _group_replicas(replicated_jobs: Any, group: str) -> list[int]:
    return [
        names.replicas_of(job)
        for job in replicated_jobs
        if dig(job, "groupName", default="default") == group
    ]


def _exclusive_placement(jobset: ObjectView, template: Mapping[str, Any]) -> dict[str, str]:
    """Placement annotations, copied only; the replicated job's value wins."""
    found = {**annotations_of(jobset), **annotations_of(template)}
    if names.EXCLUSIVE_TOPOLOGY not in found:
        return {}
    wanted = (names.EXCLUSIVE_TOPOLOGY, names.NODE_SELECTOR_STRATEGY)
    return {key: found[key] for key in wanted if key in found}


def _merge_marks(
    metadata: Mapping[str, Any] | None, marks: Mapping[str, str], extra: Mapping[str, str]
) -> Object:
    merged: Object = copy.deepcopy(dict(metadata or {}))
    merged["labels"] = {**(merged.get("labels") or {}), **marks}
    merged["annotations"] = {**(merged.get("annotations") or {}), **marks, **extra}
    return merged


def _append_claims(jobset: ObjectView, pod_template: Object) -> None:
    """Give a Job that mounts a claim template's name the volume of its claim."""
    spec = pod_template.get("spec") or {}
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    mounted = {
        mount.get("name")
        for container in containers
        for mount in container.get("volumeMounts") or ()
    }
    for policy in dig(jobset, "spec", "volumeClaimPolicies", default=()):
        for claim in policy.get("templates") or ():
            name = name_of(claim)
            if name in mounted:
                volume = {
                    "name": name,
                    "persistentVolumeClaim": {"claimName": f"{name}-{name_of(jobset)}"},
                }
                spec.setdefault("volumes", []).append(volume)


def build_claims(jobset: ObjectView) -> list[Object]:
    """The claims of `spec.volumeClaimPolicies`; owned by the JobSet unless they are retained."""
    claims = []
    for policy in dig(jobset, "spec", "volumeClaimPolicies", default=()):
        retained = dig(policy, "retentionPolicy", "whenDeleted", default="Delete") == "Retain"
        for template in policy.get("templates") or ():
            metadata: Object = copy.deepcopy(dict(template["metadata"]))
            metadata["labels"] = {
                **(metadata.get("labels") or {}),
                JOBSET_NAME_LABEL: name_of(jobset),
            }
            metadata |= {
                "name": f"{name_of(template)}-{name_of(jobset)}",
                "namespace": namespace_of(jobset),
            }
            if not retained:
                metadata["ownerReferences"] = [controller_reference(jobset)]
            claims.append(
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "metadata": metadata,
                    "spec": copy.deepcopy(template["spec"]),
                }
            )
    return claims
