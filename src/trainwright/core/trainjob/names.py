"""What a JobSet's final conditions are called on its TrainJob, and how our own conditions are."""

from __future__ import annotations

from trainwright.api.conditions import (
    JOBSET_COMPLETED,
    JOBSET_FAILED,
    TRAINJOB_COMPLETE,
    TRAINJOB_FAILED,
)
from trainwright.api.wellknown import OWN_CONDITION_PREFIX

TERMINAL = ((JOBSET_COMPLETED, TRAINJOB_COMPLETE), (JOBSET_FAILED, TRAINJOB_FAILED))
"""Conditions of a JobSet that end it, and what they are called on the TrainJob."""


def own_condition_type(cause: str) -> str:
    """The type of a condition of ours, which exists only while `cause` does."""
    return OWN_CONDITION_PREFIX + cause


def is_own_condition(condition_type: object) -> bool:
    """Whether a condition type is one of ours."""
    return isinstance(condition_type, str) and condition_type.startswith(OWN_CONDITION_PREFIX)
