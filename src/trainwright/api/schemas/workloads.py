"""Roots of the kinds that run work: Job, JobSet, TrainJob and the runtimes.

`ROOTS` of each such module maps a kind to its root without apiVersion, kind and metadata, which
`registry` adds.
"""

from __future__ import annotations

from trainwright.api.schemas.jobs import JOB_SPEC, JOB_STATUS
from trainwright.api.schemas.jobsets import JOBSET_SPEC, JOBSET_STATUS
from trainwright.api.schemas.runtimes import RUNTIME_SPEC
from trainwright.api.schemas.structural import Schema, obj
from trainwright.api.schemas.trainjobs import ROOT_RULES, TRAINJOB_SPEC, TRAINJOB_STATUS

ROOTS: dict[str, Schema] = {
    "Job": obj("Runs Pods until enough succeed.", {"spec": JOB_SPEC, "status": JOB_STATUS}),
    "JobSet": obj("Runs Jobs as one workload.", {"spec": JOBSET_SPEC, "status": JOBSET_STATUS}),
    "TrainJob": obj(
        "One training.", {"spec": TRAINJOB_SPEC, "status": TRAINJOB_STATUS}, rules=ROOT_RULES
    ),
    "TrainingRuntime": obj("How trainings of a namespace are run.", {"spec": RUNTIME_SPEC}),
    "ClusterTrainingRuntime": obj("How trainings are run.", {"spec": RUNTIME_SPEC}),
}
