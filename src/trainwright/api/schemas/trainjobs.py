"""Definitions of TrainJob, with the fields of Trainer 2.0 and 2.1 that are converted on arrival."""

from __future__ import annotations

from trainwright.api.schemas.containers import ENV_VAR, RESOURCES, SECURITY_CONTEXT, VOLUME_MOUNT
from trainwright.api.schemas.metadata import EMBEDDED_META, LOCAL_OBJECT_REFERENCE, conditions
from trainwright.api.schemas.pods import (
    AFFINITY,
    POD_SECURITY_CONTEXT,
    SCHEDULING_GATE,
    TOLERATION,
)
from trainwright.api.schemas.structural import (
    IMMUTABLE,
    Schema,
    atomic,
    boolean,
    described,
    int32,
    int64,
    int_or_string,
    list_map,
    name,
    obj,
    rule,
    ruled,
    strict_time,
    string,
    string_map,
)
from trainwright.api.schemas.volumes import VOLUME
from trainwright.api.wellknown import MULTIKUEUE_CONTROLLER, TRAINJOB_CONTROLLER

ROOT_RULES = (
    rule(
        "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "metadata.name must be a DNS-1035 label: lower-case letters, digits and hyphens,"
        " starting with a letter and not ending with a hyphen",
    ),
    rule("size(self.metadata.name) <= 63", "metadata.name must have at most 63 characters"),
)

_ENV = list_map(("name",), ENV_VAR, "Environment variables.", maxItems=128)

_RUNTIME_REF = obj(
    "The runtime that says how the TrainJob is run.",
    {
        "name": name("Name of the runtime."),
        "apiGroup": string("Its API group.", maxLength=253, default="trainer.kubeflow.org"),
        "kind": string(
            "ClusterTrainingRuntime, or TrainingRuntime of the same namespace.",
            maxLength=253,
            default="ClusterTrainingRuntime",
        ),
    },
    ("name",),
    rules=(IMMUTABLE,),
)


def _initializer(what: str) -> Schema:
    return obj(
        f"Where the {what} comes from.",
        {
            "storageUri": string(
                f"Place of the {what}, such as `hf://owner/name`.",
                maxLength=2048,
                rules=(
                    rule(
                        "self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')",
                        "must be empty or a URI with a scheme and a path",
                    ),
                ),
            ),
            "env": _ENV,
            "secretRef": described(
                LOCAL_OBJECT_REFERENCE, "Secret whose keys become environment variables."
            ),
        },
    )


_INITIALIZER = obj(
    "Fetches dataset and model before the training.",
    {"dataset": _initializer("dataset"), "model": _initializer("model")},
    rules=(IMMUTABLE,),
)

_ARGUMENTS = {"type": "string", "maxLength": 1048576}

_TRAINER = obj(
    "What the training runs; each field goes before the runtime's.",
    {
        "image": string("Image of the training container.", maxLength=500),
        "command": atomic(_ARGUMENTS, "Entry point.", maxItems=128),
        "args": atomic(_ARGUMENTS, "Arguments of the entry point.", maxItems=128),
        "env": _ENV,
        "numNodes": int32("Nodes to train on."),
        "resourcesPerNode": described(RESOURCES, "Compute resources of each node."),
        "numProcPerNode": int_or_string(
            "Processes on each node. Words of Trainer 2.0 and 2.1 are converted."
        ),
    },
    rules=(IMMUTABLE,),
)

_CONTAINER_PATCHES = list_map(
    ("name",),
    obj(
        "Changes of one container.",
        {
            "name": name("Name of the container."),
            "env": _ENV,
            "volumeMounts": list_map(
                ("name",), VOLUME_MOUNT, "Volumes mounted into the container.", maxItems=128
            ),
            "securityContext": SECURITY_CONTEXT,
        },
        ("name",),
    ),
    "Changes of containers.",
    maxItems=64,
)

_POD_PATCH_FIELDS: dict[str, Schema] = {
    "serviceAccountName": string("Service account that the Pods run as.", maxLength=253),
    "volumes": list_map(("name",), VOLUME, "Volumes of the Pods.", maxItems=128),
    "initContainers": _CONTAINER_PATCHES,
    "containers": _CONTAINER_PATCHES,
    "imagePullSecrets": list_map(
        ("name",), LOCAL_OBJECT_REFERENCE, "Secrets to pull images with.", maxItems=64
    ),
    "securityContext": POD_SECURITY_CONTEXT,
    "terminationGracePeriodSeconds": int64(
        "Seconds between the stop signal and the kill.", minimum=0
    ),
    "nodeSelector": string_map("Labels that nodes must have."),
    "affinity": AFFINITY,
    "tolerations": atomic(TOLERATION, "Taints that the Pods bear.", maxItems=128),
    "schedulingGates": list_map(("name",), SCHEDULING_GATE, "Holds on scheduling.", maxItems=16),
}

IMMUTABLE_POD_PATCH_FIELDS = (
    "serviceAccountName",
    "volumes",
    "initContainers",
    "containers",
    "imagePullSecrets",
    "securityContext",
    "terminationGracePeriodSeconds",
)
"""Fields of a patch that queues do not write; the others may change while suspended."""

POD_SPEC_PATCH = obj(
    "Changes of the Pods' spec.",
    {
        field: ruled(schema, IMMUTABLE) if field in IMMUTABLE_POD_PATCH_FIELDS else schema
        for field, schema in _POD_PATCH_FIELDS.items()
    },
)

_RUNTIME_PATCH = obj(
    "Changes of the runtime by one manager.",
    {
        "manager": name("Who made the patch, such as `acme.io/team`.", rules=(IMMUTABLE,)),
        "time": strict_time("When the patch was last changed; filled by the server."),
        "trainingRuntimeSpec": obj(
            "Changes of the runtime's spec.",
            {
                "template": obj(
                    "Changes of the JobSet.",
                    {
                        "metadata": EMBEDDED_META,
                        "spec": obj(
                            "Changes of the JobSet's spec.",
                            {
                                "replicatedJobs": list_map(
                                    ("name",),
                                    obj(
                                        "Changes of one replicated job.",
                                        {
                                            "name": name("Name of the replicated job."),
                                            "template": obj(
                                                "Changes of its Jobs.",
                                                {
                                                    "metadata": EMBEDDED_META,
                                                    "spec": obj(
                                                        "Changes of the Jobs' spec.",
                                                        {
                                                            "template": obj(
                                                                "Changes of the Pods.",
                                                                {
                                                                    "metadata": EMBEDDED_META,
                                                                    "spec": POD_SPEC_PATCH,
                                                                },
                                                            )
                                                        },
                                                    ),
                                                },
                                            ),
                                        },
                                        ("name",),
                                    ),
                                    "Changes of replicated jobs.",
                                    maxItems=100,
                                )
                            },
                        ),
                    },
                )
            },
        ),
    },
    ("manager",),
)

_TARGETS = atomic(
    obj("One replicated job.", {"name": string("Its name.")}, ("name",)),
    "Replicated jobs that are changed.",
)
_OLD_POD_FIELDS = dict(_POD_PATCH_FIELDS)

_OLD_FIELDS: dict[str, Schema] = {
    "podSpecOverrides": atomic(
        obj(
            "Changes of Pods' specs.",
            {"targetJobs": _TARGETS, **_OLD_POD_FIELDS},
            ("targetJobs",),
        ),
        "Of Trainer 2.0; converted to runtimePatches.",
    ),
    "podTemplateOverrides": atomic(
        obj(
            "Changes of Pod templates.",
            {
                "targetJobs": _TARGETS,
                "metadata": EMBEDDED_META,
                "spec": obj("Changes of the Pods' spec.", _OLD_POD_FIELDS),
            },
            ("targetJobs",),
        ),
        "Of Trainer 2.1; converted to runtimePatches.",
    ),
    "labels": string_map("Of Trainer 2.0 and 2.1; converted to runtimePatches."),
    "annotations": string_map("Of Trainer 2.0 and 2.1; converted to runtimePatches."),
}

TRAINJOB_SPEC: Schema = obj(
    "What to train, on which runtime.",
    {
        "runtimeRef": _RUNTIME_REF,
        "initializer": _INITIALIZER,
        "trainer": _TRAINER,
        "runtimePatches": list_map(
            ("manager",),
            _RUNTIME_PATCH,
            "Changes of the runtime for this TrainJob, applied in order.",
            maxItems=16,
        ),
        "suspend": boolean("Whether no Pods are to run.", default=False),
        "activeDeadlineSeconds": int64(
            "Seconds from the start or last resume after which the TrainJob fails.",
            minimum=1,
            rules=(IMMUTABLE,),
        ),
        "managedBy": string(
            "Controller that runs the TrainJob.",
            maxLength=253,
            default=TRAINJOB_CONTROLLER,
            rules=(
                rule(
                    f"self in ['{TRAINJOB_CONTROLLER}', '{MULTIKUEUE_CONTROLLER}']",
                    f"must be {TRAINJOB_CONTROLLER} or {MULTIKUEUE_CONTROLLER}",
                ),
                IMMUTABLE,
            ),
        ),
        **_OLD_FIELDS,
    },
    ("runtimeRef",),
)


def _count(description: str) -> Schema:
    return int32(description, minimum=0)


TRAINER_STATUS: Schema = obj(
    "What the training says about itself.",
    {
        "progressPercentage": int32("Progress of the training.", minimum=0, maximum=100),
        "estimatedRemainingSeconds": int32("Seconds that are left.", minimum=0),
        "metrics": atomic(
            obj(
                "One metric.",
                {
                    "name": string("Its name.", minLength=1, maxLength=64),
                    "value": string("Its latest value.", minLength=1, maxLength=64),
                },
                ("name", "value"),
            ),
            "Latest values of metrics.",
            maxItems=256,
        ),
        "lastUpdatedTime": strict_time("When this was told."),
    },
    rules=(rule("has(self.lastUpdatedTime)", "lastUpdatedTime is required"),),
)

TRAINJOB_STATUS: Schema = obj(
    "State of the TrainJob.",
    {
        "conditions": conditions("Aspects of the state, in order of appearance.", maxItems=8),
        "jobsStatus": list_map(
            ("name",),
            obj(
                "Counts of Jobs of one replicated job.",
                {
                    "name": name("Name of the replicated job."),
                    "ready": _count("Jobs whose Pods are all ready or done."),
                    "succeeded": _count("Jobs that succeeded."),
                    "failed": _count("Jobs that failed."),
                    "active": _count("Jobs with active Pods."),
                    "suspended": _count("Jobs that are suspended."),
                },
                ("active", "failed", "name", "ready", "succeeded", "suspended"),
            ),
            "Counts of Jobs by replicated job.",
            maxItems=100,
        ),
        "trainerStatus": TRAINER_STATUS,
    },
    minProperties=1,
)
