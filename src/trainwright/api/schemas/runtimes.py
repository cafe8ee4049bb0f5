"""Definitions of TrainingRuntime and ClusterTrainingRuntime: ML policies and the JobSet template."""

from __future__ import annotations

from trainwright.api.schemas.jobsets import JOBSET_SPEC
from trainwright.api.schemas.metadata import EMBEDDED_META
from trainwright.api.schemas.structural import (
    Schema,
    boolean,
    int32,
    int_or_string,
    list_map,
    name,
    obj,
    open_obj,
    rule,
    set_of,
    string,
)

AT_LEAST_ONE = rule("self >= 1", "must be at least 1")

_TORCH = obj(
    "Runs torchrun on each node.",
    {
        "envInjection": obj(
            "Further containers that get the PET_ variables.",
            {
                "targets": list_map(
                    ("jobName",),
                    obj(
                        "Containers of one replicated job.",
                        {
                            "jobName": name("Name of the replicated job."),
                            "containerNames": set_of(
                                {"type": "string", "maxLength": 63},
                                "Containers or init containers of it.",
                                minItems=1,
                                maxItems=8,
                                rules=(
                                    rule(
                                        "self.all(name, name != 'node')",
                                        "container node gets the variables anyway",
                                    ),
                                ),
                            ),
                        },
                        ("containerNames", "jobName"),
                    ),
                    "The containers.",
                    maxItems=16,
                )
            },
        ),
        "numProcPerNode": int_or_string("Of Trainer 2.0 and 2.1; without effect."),
        "elasticPolicy": open_obj("Of Trainer 2.0 and 2.1; without effect."),
    },
)

_MPI = obj(
    "Runs mpirun on the launcher, over SSH to the nodes.",
    {
        "numProcPerNode": int32("Processes on each node.", default=1, rules=(AT_LEAST_ONE,)),
        "mpiImplementation": string(
            "Which MPI the image has.", enum=["OpenMPI", ""], default="OpenMPI"
        ),
        "sshAuthMountPath": string(
            "Folder that the SSH keys are mounted at.", maxLength=4096, default="/root/.ssh"
        ),
        "runLauncherAsNode": boolean("Whether the launcher trains as well.", default=False),
    },
)

_FLUX = obj(
    "Runs the command under the Flux scheduler.",
    {"numProcPerNode": int32("Processes on each node.", default=1, rules=(AT_LEAST_ONE,))},
)

ML_POLICY = obj(
    "How the training is distributed; at most one framework.",
    {
        "numNodes": int32("Nodes to train on; 1 when unset."),
        "torch": _TORCH,
        "mpi": _MPI,
        "jax": obj("Runs jax.distributed on each node."),
        "xgboost": obj("Runs an XGBoost collective over the nodes."),
        "flux": _FLUX,
    },
    rules=(
        rule(
            "[has(self.torch), has(self.mpi), has(self.jax), has(self.xgboost), has(self.flux)]"
            ".filter(chosen, chosen).size() <= 1",
            "at most one of torch, mpi, jax, xgboost and flux can be set",
        ),
    ),
)

_POD_GROUP_POLICY = obj(
    "Gang scheduling.",
    {
        "coscheduling": obj(
            "By the coscheduling plugin.",
            {"scheduleTimeoutSeconds": int32("Seconds that the gang waits.", default=60)},
        ),
        "volcano": obj(
            "By Volcano.",
            {
                "networkTopology": obj(
                    "How near the nodes must be.",
                    {
                        "mode": string(
                            "Whether nearness is a must.", enum=["hard", "soft"], default="hard"
                        ),
                        "highestTierAllowed": {
                            "type": "integer",
                            "description": "Highest tier that the gang may span.",
                            "default": 1,
                        },
                    },
                )
            },
        ),
    },
)

RUNTIME_SPEC: Schema = obj(
    "How TrainJobs that name this runtime are run.",
    {
        "mlPolicy": ML_POLICY,
        "podGroupPolicy": _POD_GROUP_POLICY,
        "template": obj(
            "The JobSet that is made for a TrainJob.",
            {"metadata": EMBEDDED_META, "spec": JOBSET_SPEC},
            minProperties=1,
        ),
    },
    minProperties=1,
)
