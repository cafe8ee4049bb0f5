"""Definitions of batch/v1 Job."""

from __future__ import annotations

from trainwright.api.schemas.metadata import EMBEDDED_META, LABEL_SELECTOR, OBJECT_META
from trainwright.api.schemas.pods import build_template
from trainwright.api.schemas.structural import (
    Schema,
    atomic,
    boolean,
    int32,
    int64,
    merged,
    obj,
    set_of,
    string,
    time,
)

_POD_FAILURE_RULE = obj(
    "What to do with failed Pods that match; exactly one of the two requirements.",
    {
        "action": string("FailJob, FailIndex, Ignore or Count."),
        "onExitCodes": obj(
            "Exit codes to match.",
            {
                "containerName": string("Container to look at; all when unset."),
                "operator": string("In or NotIn."),
                "values": set_of(int32(), "The codes."),
            },
            ("operator", "values"),
        ),
        "onPodConditions": atomic(
            obj(
                "A condition of the Pod to match.",
                {"status": string("True when unset."), "type": string()},
                ("type",),
            )
        ),
    },
    ("action",),
)


def build_job_spec(template: Schema) -> Schema:
    """The spec of a Job around a Pod template."""
    return obj(
        "What the Job is to run, and how often.",
        {
            "activeDeadlineSeconds": int64("Seconds after which the Job fails."),
            "backoffLimit": int32("Failures before the Job fails; 6 when unset."),
            "backoffLimitPerIndex": int32("Failures of one index before that index fails."),
            "completionMode": string("NonIndexed or Indexed."),
            "completions": int32("Pods that must succeed."),
            "managedBy": string("Controller that runs the Job; unset for ours."),
            "manualSelector": boolean("Whether the selector is the user's own."),
            "maxFailedIndexes": int32("Failed indexes before the Job fails."),
            "parallelism": int32("Most Pods at one time."),
            "podFailurePolicy": obj(
                "How failed Pods count.",
                {"rules": atomic(_POD_FAILURE_RULE, "Rules; the first match decides.")},
                ("rules",),
            ),
            "podReplacementPolicy": string(
                "When a Pod is replaced: TerminatingOrFailed or Failed."
            ),
            "selector": LABEL_SELECTOR,
            "successPolicy": obj(
                "When the Job succeeds early.",
                {
                    "rules": atomic(
                        obj(
                            "",
                            {
                                "succeededCount": int32("Indexes that must succeed."),
                                "succeededIndexes": string("Indexes that count, such as `0,2-4`."),
                            },
                        ),
                        "Rules; any that holds ends the Job.",
                    )
                },
                ("rules",),
            ),
            "suspend": boolean("Whether no Pods are to run."),
            "template": template,
            "ttlSecondsAfterFinished": int32("Seconds after its end that the Job is deleted."),
        },
        ("template",),
    )


JOB_SPEC = build_job_spec(build_template(OBJECT_META))
EMBEDDED_POD_TEMPLATE = build_template(EMBEDDED_META)
JOB_TEMPLATE = obj(
    "The Jobs to make.",
    {"metadata": EMBEDDED_META, "spec": build_job_spec(EMBEDDED_POD_TEMPLATE)},
)
"""Job template inside a JobSet or a runtime."""

JOB_STATUS = obj(
    "State of the Job.",
    {
        "active": int32("Pods that are pending or running."),
        "completedIndexes": string("Indexes that succeeded, such as `1,3-5`."),
        "completionTime": time("When the Job completed."),
        "conditions": merged(
            atomic(
                obj(
                    "One aspect of the state.",
                    {
                        "type": string("Complete, Failed, Suspended, ..."),
                        "status": string("True, False or Unknown."),
                        "reason": string(),
                        "message": string(),
                        "lastProbeTime": time(),
                        "lastTransitionTime": time(),
                    },
                    ("status", "type"),
                ),
                "Aspects of the state.",
            ),
            "type",
        ),
        "failed": int32("Pods that failed."),
        "failedIndexes": string("Indexes that failed."),
        "ready": int32("Active Pods that are ready."),
        "startTime": time("When the Job was taken up."),
        "succeeded": int32("Pods that succeeded."),
        "terminating": int32("Pods on their way out."),
        "uncountedTerminatedPods": obj(
            "Pods that ended and are not yet counted.",
            {"failed": set_of({"type": "string"}), "succeeded": set_of({"type": "string"})},
        ),
    },
)
