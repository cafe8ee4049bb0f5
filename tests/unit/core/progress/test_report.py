"""Reading progress posts: what the recorded answers of the public server say of a body."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from trainwright.core.progress.report import (
    UnreadableReport,
    build_trainer_status,
    find_report_errors,
    parse_report,
    render_report,
)

TIME = "2026-01-01T00:00:00Z"


def body(**status: Any) -> bytes:
    return msgspec.json.encode({"trainerStatus": {"lastUpdatedTime": TIME} | status})


@pytest.mark.parametrize(
    ("sent", "understood"),
    [
        pytest.param(b"{}", {}, id="nothing is said"),
        pytest.param(b"null", {}, id="null"),
        pytest.param(b'{"trainerStatus": null}', {}, id="null status"),
        pytest.param(
            body(progressPercentage=5, metrics=[{"name": "a", "value": "1", "x": 1}], y=2),
            {
                "trainerStatus": {
                    "progressPercentage": 5,
                    "metrics": [{"name": "a", "value": "1"}],
                    "lastUpdatedTime": TIME,
                }
            },
            id="unknown fields are dropped",
        ),
        pytest.param(
            body(estimatedRemainingSeconds=9, lastUpdatedTime="2026-01-01T01:00:00.5+01:00"),
            {"trainerStatus": {"estimatedRemainingSeconds": 9, "lastUpdatedTime": TIME}},
            id="fractions are cut, zones become Z",
        ),
        pytest.param(body() + b" x", {"trainerStatus": {"lastUpdatedTime": TIME}}, id="text after"),
        pytest.param(b' \n{"other": 1}', {}, id="other fields alone"),
    ],
)
def test_a_report_is_echoed_as_it_was_understood(sent: bytes, understood: Any) -> None:
    answer = render_report(parse_report(sent))
    assert msgspec.json.decode(answer) == understood
    assert answer.endswith(b"\n")


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"[]",
        b"no json",
        b"\xff\xfe",
        b"[" * 30000,
        body(metrics=[{"name": "a", "value": 1}]),
        body(progressPercentage="5"),
        body(progressPercentage=5.5),
        body(progressPercentage=2**31),
        body(lastUpdatedTime="yesterday"),
        body(lastUpdatedTime="2026-01-01T00:00:00"),
        b'{"trainerStatus": 3}',
    ],
)
def test_other_types_cannot_be_read(sent: bytes) -> None:
    with pytest.raises(UnreadableReport):
        parse_report(sent)


@pytest.mark.parametrize(
    ("sent", "path"),
    [
        (b'{"trainerStatus": {}}', "status.trainerStatus.lastUpdatedTime"),
        (body(progressPercentage=101), "status.trainerStatus.progressPercentage"),
        (body(estimatedRemainingSeconds=-1), "status.trainerStatus.estimatedRemainingSeconds"),
        (body(metrics=[{"name": "a", "value": "1"}] * 257), "status.trainerStatus.metrics"),
        (body(metrics=[{"name": "", "value": "1"}]), "status.trainerStatus.metrics[0].name"),
        (body(metrics=[{"name": "a"}]), "status.trainerStatus.metrics[0].value"),
    ],
)
def test_forbidden_values_come_back_with_their_field(sent: bytes, path: str) -> None:
    status = parse_report(sent).trainer_status
    assert status is not None
    assert path in [error.path for error in find_report_errors(status)]


def test_what_is_written_is_what_was_sent() -> None:
    status = parse_report(body(progressPercentage=0)).trainer_status
    assert status is not None
    assert find_report_errors(status) == []
    assert build_trainer_status(status) == {"progressPercentage": 0, "lastUpdatedTime": TIME}
