"""Definitions of JobSet v1alpha2 as of JobSet 0.12; TrainingRuntimes embed its spec whole."""

from __future__ import annotations

from trainwright.api.schemas.jobs import JOB_TEMPLATE
from trainwright.api.schemas.metadata import EMBEDDED_META, conditions
from trainwright.api.schemas.structural import (
    IMMUTABLE,
    Schema,
    atomic,
    boolean,
    int32,
    keyed,
    list_map,
    obj,
    rule,
    ruled,
    string,
    strings,
)
from trainwright.api.schemas.volumes import build_claim

FAILURE_ACTIONS = (
    "FailJobSet",
    "RestartJobSet",
    "RestartJobSetAndIgnoreMaxRestarts",
    "RestartJob",
    "RestartJobAndIgnoreMaxRestarts",
)

_DEPENDS_ON = list_map(
    ("name",),
    obj(
        "One replicated job to wait for.",
        {
            "name": string("An earlier replicated job."),
            "status": string("What to wait for.", enum=["Ready", "Complete"]),
        },
        ("name", "status"),
    ),
    "Replicated jobs to wait for before this one starts.",
    maxItems=5,
    rules=(IMMUTABLE,),
)

REPLICATED_JOB = obj(
    "A group of equal Jobs.",
    {
        "name": string("Name of the group, part of the names of its Jobs."),
        "groupName": string("Group that the Job indexes are counted in.", default="default"),
        "replicas": int32("Jobs to make.", default=1),
        "template": JOB_TEMPLATE,
        "dependsOn": _DEPENDS_ON,
    },
    ("name", "template"),
)

_TARGETS = strings("Replicated jobs that this is about; all when empty.")

_FAILURE_RULE = obj(
    "What to do about a failed Job that matches.",
    {
        "name": string("Name of the rule."),
        "action": string("What to do.", enum=list(FAILURE_ACTIONS)),
        "onJobFailureReasons": strings("Reasons to match; any when empty."),
        "onJobFailureMessagePatterns": strings("Patterns of messages to match; any when empty."),
        "targetReplicatedJobs": _TARGETS,
    },
    ("action", "name"),
)

_CLAIM_TEMPLATE = ruled(
    build_claim(EMBEDDED_META),
    rule(
        "!has(self.metadata) || !has(self.metadata.namespace) || self.metadata.namespace == ''",
        "a claim template takes the namespace of its JobSet",
    ),
)

JOBSET_SPEC: Schema = obj(
    "The Jobs that make one workload.",
    {
        "replicatedJobs": keyed("name", REPLICATED_JOB, "Groups of Jobs, in order."),
        "network": obj(
            "How Pods find each other.",
            {
                "enableDNSHostnames": boolean("Whether Pods get host names of their own."),
                "publishNotReadyAddresses": boolean("Whether names resolve before Pods are ready."),
                "subdomain": string("Headless service; the JobSet's name when unset."),
            },
            rules=(IMMUTABLE,),
        ),
        "successPolicy": obj(
            "When the JobSet succeeds.",
            {
                "operator": string("Whether all or any Jobs must succeed.", enum=["All", "Any"]),
                "targetReplicatedJobs": _TARGETS,
            },
            ("operator",),
            rules=(IMMUTABLE,),
        ),
        "failurePolicy": obj(
            "What to do when a Job fails.",
            {
                "maxRestarts": int32("Restarts before the JobSet fails."),
                "restartStrategy": string(
                    "How Jobs are replaced.",
                    enum=["Recreate", "BlockingRecreate", "InPlaceRestart"],
                    default="Recreate",
                ),
                "rules": atomic(_FAILURE_RULE, "Rules; the first match decides."),
            },
            rules=(IMMUTABLE,),
        ),
        "startupPolicy": obj(
            "In which order replicated jobs start; dependsOn says more.",
            {"startupPolicyOrder": string("Order of the start.", enum=["AnyOrder", "InOrder"])},
            ("startupPolicyOrder",),
            rules=(IMMUTABLE,),
        ),
        "suspend": boolean("Whether no Pods are to run."),
        "coordinator": obj(
            "The Pod that coordinates the others.",
            {
                "replicatedJob": string("Its replicated job."),
                "jobIndex": {"type": "integer", "description": "Its Job."},
                "podIndex": {"type": "integer", "description": "Its completion index."},
            },
            ("replicatedJob",),
        ),
        "managedBy": string("Controller that runs the JobSet; unset for ours."),
        "ttlSecondsAfterFinished": int32(
            "Seconds after its end that the JobSet is deleted.", minimum=0
        ),
        "volumeClaimPolicies": atomic(
            obj(
                "Claims made for the JobSet.",
                {
                    "templates": atomic(_CLAIM_TEMPLATE, "Claims to make.", maxItems=50),
                    "retentionPolicy": obj(
                        "What becomes of the claims.",
                        {
                            "whenDeleted": string(
                                "What becomes of them when the JobSet is deleted.",
                                enum=["Delete", "Retain"],
                                default="Delete",
                            )
                        },
                    ),
                },
            ),
            "Claims made for the JobSet.",
            maxItems=50,
            rules=(IMMUTABLE,),
        ),
    },
    rules=(
        rule(
            "!(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder'"
            " && has(self.replicatedJobs)"
            " && self.replicatedJobs.exists(job, has(job.dependsOn)))",
            "startupPolicy InOrder cannot be combined with dependsOn",
        ),
    ),
)

_COUNT = ("name", "ready", "succeeded", "failed", "active", "suspended")
_RESTARTS = atomic(int32(), maxItems=1024)

JOBSET_STATUS: Schema = obj(
    "State of the JobSet.",
    {
        "conditions": conditions("Aspects of the state."),
        "restarts": int32("How often all Jobs were made anew."),
        "restartsCountTowardsMax": int32("Restarts that used up maxRestarts."),
        "terminalState": string("Completed or Failed once the JobSet has ended."),
        "previousInPlaceRestartAttempt": int32(),
        "currentInPlaceRestartAttempt": int32(),
        "replicatedJobsStatus": list_map(
            ("name",),
            obj(
                "Counts of Jobs of one replicated job.",
                {
                    "name": string("Name of the replicated job."),
                    "ready": int32("Jobs whose Pods are all ready or done."),
                    "succeeded": int32("Jobs that succeeded."),
                    "failed": int32("Jobs that failed."),
                    "active": int32("Jobs with active Pods."),
                    "suspended": int32("Jobs that are suspended."),
                    "jobRestarts": _RESTARTS,
                    "jobRestartsCountTowardsMax": _RESTARTS,
                },
                _COUNT,
            ),
            "Counts of Jobs by replicated job.",
        ),
    },
)
