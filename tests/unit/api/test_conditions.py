"""The table of conditions and events, held against the schemas that they are stored under."""

from __future__ import annotations

import re

import pytest

from trainwright.api.conditions import (
    CONDITION_REASONS,
    EVENT_REASONS,
    ConditionReason,
)
from trainwright.api.kinds import TRAINJOB
from trainwright.api.schemas.metadata import CONDITION


@pytest.mark.parametrize("row", CONDITION_REASONS, ids=lambda row: f"{row.type}-{row.reason}")
def test_reason_fits_the_schema_of_conditions_and_has_a_source(row: ConditionReason) -> None:
    fields = CONDITION["properties"]
    assert re.search(fields["type"]["pattern"], row.type)
    assert re.search(fields["reason"]["pattern"], row.reason)
    assert row.source


def test_no_reason_stands_twice() -> None:
    keys = [(row.kind, row.type, row.status, row.reason) for row in CONDITION_REASONS]
    assert len(keys) == len(set(keys))
    events = [(row.kind, row.reason) for row in EVENT_REASONS]
    assert len(events) == len(set(events))


def test_trainjob_conditions_are_those_that_clients_match_on() -> None:
    rows = {
        (row.type, str(row.status), row.reason): row.message
        for row in CONDITION_REASONS
        if row.kind == TRAINJOB
    }
    assert rows == {
        ("Suspended", "True", "Suspended"): "TrainJob is suspended",
        ("Suspended", "False", "Resumed"): "TrainJob is resumed",
        ("Complete", "True", "AllJobsCompleted"): "jobset completed successfully",
        ("Failed", "True", "FailedJobs"): "jobset failed due to one or more job failures",
        ("Failed", "True", "ReachedMaxRestarts"): "",
        ("Failed", "True", "FailJobSetFailurePolicyAction"): "",
        ("Failed", "True", "DeadlineExceeded"): "TrainJob exceeded its active deadline",
        ("Failed", "True", "TrainingRuntimeNotSupported"): "",
    }
