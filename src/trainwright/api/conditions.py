"""Conditions and events: types, reasons and texts that clients match on, each with its source.

Types and reasons are the wire's, letter for letter. A text is here only where it is always the
same; texts with names or numbers in them are written where those are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from trainwright.api.kinds import JOB, JOBSET, POD, TRAINJOB, Kind


class ConditionStatus(StrEnum):
    """`status` of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionReason:
    """One reason that a condition of a kind can have in a status."""

    kind: Kind
    type: str
    status: ConditionStatus
    reason: str
    message: str = ""
    """The text where it is always the same, else empty."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventReason:
    """One event that a controller tells about objects of a kind."""

    kind: Kind
    type: str
    reason: str
    action: str = "Reconciling"
    source: str


NORMAL: Final = "Normal"
WARNING: Final = "Warning"

TRAINJOB_SUSPENDED: Final = "Suspended"
TRAINJOB_COMPLETE: Final = "Complete"
TRAINJOB_FAILED: Final = "Failed"

SUSPENDED_REASON: Final = "Suspended"
SUSPENDED_MESSAGE: Final = "TrainJob is suspended"
RESUMED_REASON: Final = "Resumed"
RESUMED_MESSAGE: Final = "TrainJob is resumed"
DEADLINE_EXCEEDED_REASON: Final = "DeadlineExceeded"
DEADLINE_EXCEEDED_MESSAGE: Final = "TrainJob exceeded its active deadline"
RUNTIME_NOT_SUPPORTED_REASON: Final = "TrainingRuntimeNotSupported"

CONTAINER_EXITED: Final = "ContainerExited"
"""Event of the laptop's node: a container ended with an error by itself."""
WORKING_FOLDER_LOST: Final = "WorkingFolderLost"
"""Event of the laptop's node: the folder that a job was submitted from is not there."""
SECURITY_CONTEXT_IGNORED: Final = "SecurityContextIgnored"
"""Event of the laptop's node: what a pod's securityContext asks for and does not get."""
FAILED_CREATE: Final = "FailedCreate"

JOBSET_COMPLETED: Final = "Completed"
JOBSET_FAILED: Final = "Failed"
JOBSET_SUSPENDED: Final = "Suspended"
JOBSET_RESTARTING: Final = "RestartingJobSet"
JOBSET_STARTUP_IN_PROGRESS: Final = "StartupPolicyInProgress"
JOBSET_STARTUP_COMPLETED: Final = "StartupPolicyCompleted"

JOB_COMPLETE: Final = "Complete"
JOB_FAILED: Final = "Failed"
JOB_SUSPENDED: Final = "Suspended"
JOB_FAILURE_TARGET: Final = "FailureTarget"
JOB_SUCCESS_CRITERIA_MET: Final = "SuccessCriteriaMet"

POD_SCHEDULED: Final = "PodScheduled"
POD_READY_TO_START: Final = "PodReadyToStartContainers"
POD_INITIALIZED: Final = "Initialized"
POD_CONTAINERS_READY: Final = "ContainersReady"
POD_READY: Final = "Ready"
POD_DISRUPTION_TARGET: Final = "DisruptionTarget"

_TRAINER = "Trainer 2.3, trainjob controller"
_JOBSET = "JobSet 0.12, jobset controller"
_JOB = "Kubernetes 1.36, job controller"
_POD = "Kubernetes 1.36, kubelet and scheduler"
_TRUE, _FALSE = ConditionStatus.TRUE, ConditionStatus.FALSE


def _row(
    kind: Kind, type_: str, status: ConditionStatus, reason: str, message: str, source: str
) -> ConditionReason:
    return ConditionReason(
        kind=kind, type=type_, status=status, reason=reason, message=message, source=source
    )


_OF_TRAINJOB = tuple(
    _row(TRAINJOB, type_, status, reason, message, _TRAINER)
    for type_, status, reason, message in (
        (TRAINJOB_SUSPENDED, _TRUE, SUSPENDED_REASON, SUSPENDED_MESSAGE),
        (TRAINJOB_SUSPENDED, _FALSE, RESUMED_REASON, RESUMED_MESSAGE),
        (TRAINJOB_COMPLETE, _TRUE, "AllJobsCompleted", "jobset completed successfully"),
        (
            TRAINJOB_FAILED,
            _TRUE,
            "FailedJobs",
            "jobset failed due to one or more job failures",
        ),
        (TRAINJOB_FAILED, _TRUE, "ReachedMaxRestarts", ""),
        (TRAINJOB_FAILED, _TRUE, "FailJobSetFailurePolicyAction", ""),
        (TRAINJOB_FAILED, _TRUE, DEADLINE_EXCEEDED_REASON, DEADLINE_EXCEEDED_MESSAGE),
        (TRAINJOB_FAILED, _TRUE, RUNTIME_NOT_SUPPORTED_REASON, ""),
    )
)

_OF_JOBSET = tuple(
    _row(JOBSET, type_, status, reason, message, _JOBSET)
    for type_, status, reason, message in (
        (JOBSET_COMPLETED, _TRUE, "AllJobsCompleted", "jobset completed successfully"),
        (JOBSET_FAILED, _TRUE, "FailedJobs", "jobset failed due to one or more job failures"),
        (JOBSET_FAILED, _TRUE, "ReachedMaxRestarts", ""),
        (JOBSET_FAILED, _TRUE, "FailJobSetFailurePolicyAction", ""),
        (JOBSET_SUSPENDED, _TRUE, "SuspendedJobs", ""),
        (JOBSET_SUSPENDED, _FALSE, "ResumeJobs", ""),
        (JOBSET_RESTARTING, _TRUE, "DefaultFailurePolicy", ""),
        (JOBSET_RESTARTING, _FALSE, "JobsReady", ""),
        (JOBSET_RESTARTING, _FALSE, "JobSetFailed", ""),
        (JOBSET_RESTARTING, _FALSE, "JobSetCompleted", ""),
        (JOBSET_RESTARTING, _FALSE, "JobSetSuspended", ""),
        (JOBSET_STARTUP_IN_PROGRESS, _TRUE, "InOrderStartupPolicyInProgress", ""),
        (JOBSET_STARTUP_COMPLETED, _TRUE, "InOrderStartupPolicyCompleted", ""),
    )
)

FAILURE_POLICY_REASON_PREFIX: Final = "FailurePolicy_"
"""Reason of RestartingJobSet when a named rule matched: this and the rule's name."""

JOB_FAILURE_REASONS: Final = (
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
)
"""Why a Job fails; what `onJobFailureReasons` of a JobSet's rule may name."""

_OF_JOB = (
    *(
        _row(JOB, type_, _TRUE, reason, "", _JOB)
        for type_ in (JOB_FAILURE_TARGET, JOB_FAILED)
        for reason in JOB_FAILURE_REASONS
    ),
    *(
        _row(JOB, type_, _TRUE, reason, "", _JOB)
        for type_ in (JOB_SUCCESS_CRITERIA_MET, JOB_COMPLETE)
        for reason in ("CompletionsReached", "SuccessPolicy")
    ),
    _row(JOB, JOB_SUSPENDED, _TRUE, "JobSuspended", "", _JOB),
    _row(JOB, JOB_SUSPENDED, _FALSE, "JobResumed", "", _JOB),
)

_OF_POD = tuple(
    _row(POD, type_, status, reason, "", _POD)
    for type_, status, reason in (
        (POD_SCHEDULED, _FALSE, "Unschedulable"),
        (POD_SCHEDULED, _FALSE, "SchedulingGated"),
        (POD_INITIALIZED, _FALSE, "ContainersNotInitialized"),
        *(
            (type_, _FALSE, reason)
            for type_ in (POD_CONTAINERS_READY, POD_READY)
            for reason in ("ContainersNotReady", "PodCompleted", "PodFailed")
        ),
        (POD_READY, _FALSE, "ReadinessGatesNotReady"),
        (POD_DISRUPTION_TARGET, _TRUE, "PreemptionByScheduler"),
        (POD_DISRUPTION_TARGET, _TRUE, "EvictionByEvictionAPI"),
        (POD_DISRUPTION_TARGET, _TRUE, "TerminationByKubelet"),
        (POD_DISRUPTION_TARGET, _TRUE, "ExclusivePlacementViolation"),
    )
)

CONDITION_REASONS: tuple[ConditionReason, ...] = (
    *_OF_TRAINJOB, *_OF_JOBSET, *_OF_JOB, *_OF_POD,
)  # fmt: skip
"""Every reason of a condition that we write."""

RESOURCES_FAILED_EVENT: Final = "TrainJobResourcesCreationFailed"
RESOURCES_FAILED_PREFIX: Final = "TrainJob resources reconciliation failed: "
"""Beginning of the note of TrainJobResourcesCreationFailed; the error follows."""
MAX_NOTED_ERROR_CHARACTERS: Final = 950
"""An error longer than this is cut in the note, with ` ...` behind it."""


def _event(
    kind: Kind, type_: str, reason: str, source: str, action: str = "Reconciling"
) -> EventReason:
    return EventReason(kind=kind, type=type_, reason=reason, action=action, source=source)


EVENT_REASONS: tuple[EventReason, ...] = (
    _event(TRAINJOB, WARNING, RESOURCES_FAILED_EVENT, _TRAINER),
    *(
        _event(JOBSET, WARNING, reason, _JOBSET)
        for reason in (
            "JobCreationFailed",
            "HeadlessServiceCreationFailed",
            "PVCCreationFailed",
            "RestartJobSetFailurePolicyAction",
            "RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction",
            "RestartJobFailurePolicyAction",
            "RestartJobAndIgnoreMaxRestartsFailurePolicyAction",
        )
    ),
    *(
        _event(POD, NORMAL, reason, _POD, action)
        for reason, action in (
            ("Scheduled", "Binding"),
            ("Pulled", ""),
            ("Created", ""),
            ("Started", ""),
            ("Killing", ""),
        )
    ),
    *(
        _event(POD, WARNING, reason, _POD, action)
        for reason, action in (
            ("FailedScheduling", "Scheduling"),
            ("BackOff", ""),
            ("Failed", ""),
            ("FailedMount", ""),
            ("Unhealthy", ""),
        )
    ),
)
"""Every event that we tell, besides those of JobSet conditions, which repeat the condition."""

TRAINJOB_CONTROLLER_NAME: Final = "trainer-trainjob-controller"
"""`reportingController` of events about TrainJobs."""
JOBSET_CONTROLLER_NAME: Final = "jobset"
"""`reportingController` of events about JobSets."""
