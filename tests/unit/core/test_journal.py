"""Facts: which attempt a pod belongs to, and which conditions changed."""

from __future__ import annotations

import pytest

from trainwright.core.journal import Subject, Transition, attempt_of, find_transitions

LABEL = "jobset.sigs.k8s.io/restart-attempt"


@pytest.mark.parametrize(
    ("labels", "attempt"),
    [({}, 0), ({LABEL: "0"}, 0), ({LABEL: "3"}, 3), ({LABEL: "x"}, 0), ({LABEL: "-1"}, 0)],
)
def test_the_attempt_is_the_number_of_restarts(labels: dict[str, str], attempt: int) -> None:
    assert attempt_of({"metadata": {"labels": labels}}) == attempt


def test_conditions_that_changed_are_transitions() -> None:
    metadata = {"name": "j", "namespace": "ml", "uid": "u"}
    before = {
        "status": {
            "conditions": [
                {"type": "Suspended", "status": "True"},
                {"type": "Ready", "status": "True"},
            ]
        }
    }
    after = {
        "kind": "TrainJob",
        "metadata": metadata,
        "status": {
            "conditions": [
                {"type": "Suspended", "status": "False", "reason": "Resumed", "message": "on"},
                {"type": "Ready", "status": "True", "reason": "Other"},
                {"type": "Complete", "status": "True"},
            ]
        },
    }
    subject = Subject(kind="TrainJob", namespace="ml", name="j", uid="u")
    assert list(find_transitions(before, after)) == [
        Transition(
            subject=subject,
            condition="Suspended",
            status="False",
            reason="Resumed",
            message="on",
        ),
        Transition(subject=subject, condition="Complete", status="True"),
    ]
    assert list(find_transitions(after, after)) == []
