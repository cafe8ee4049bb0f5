"""Reasons and texts of the conditions that the TrainJob controller sets, and how ours are called."""

from __future__ import annotations

from trainwright.api.conditions import (
    JOBSET_COMPLETED,
    JOBSET_FAILED,
    RESOURCES_FAILED_PREFIX,
    TRAINJOB_COMPLETE,
    TRAINJOB_FAILED,
    TRAINJOB_SUSPENDED,
)
from trainwright.api.wellknown import OWN_CONDITION_PREFIX

SUSPENDED = TRAINJOB_SUSPENDED
COMPLETE = TRAINJOB_COMPLETE
FAILED = TRAINJOB_FAILED

REASON_SUSPENDED = "Suspended"
REASON_RESUMED = "Resumed"
REASON_DEADLINE_EXCEEDED = "DeadlineExceeded"
REASON_RUNTIME_NOT_SUPPORTED = "TrainingRuntimeNotSupported"

MESSAGE_SUSPENDED = "TrainJob is suspended"
MESSAGE_RESUMED = "TrainJob is resumed"
MESSAGE_DEADLINE_EXCEEDED = "TrainJob exceeded its active deadline"

TERMINAL = ((JOBSET_COMPLETED, COMPLETE), (JOBSET_FAILED, FAILED))
"""Conditions of a JobSet that end it, and what they are called on the TrainJob."""

EVENT_RESOURCES_FAILED = "TrainJobResourcesCreationFailed"
EVENT_RESOURCES_FAILED_NOTE = RESOURCES_FAILED_PREFIX


def own_condition_type(cause: str) -> str:
    """The type of a condition of ours, which exists only while `cause` does."""
    return OWN_CONDITION_PREFIX + cause


def is_own_condition(condition_type: object) -> bool:
    """Whether a condition type is one of ours."""
    return isinstance(condition_type, str) and condition_type.startswith(OWN_CONDITION_PREFIX)
