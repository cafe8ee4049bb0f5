"""Progress posts: reading a body as the public protocol has it, and what the schema says of it.

Source: Trainer 2.3, status server. Wrong types are told apart from forbidden values: the first end
the reading ("Invalid payload"), the second come back with the field.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import msgspec

from trainwright.api.schemas.trainjobs import TRAINJOB_STATUS
from trainwright.base.times import parse_time, render_time
from trainwright.schema.verdict import find_errors

if TYPE_CHECKING:
    from trainwright.base.errors import FieldError
    from trainwright.base.objects import Object

MAX_BODY_BYTES = 65536
COMPLETE_PERCENT = 100

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]

_SCHEMA = {"type": "object", "properties": {"status": TRAINJOB_STATUS}}


class UnreadableReport(ValueError):
    """The body is no report: no JSON, or values of other types."""


class Metric(msgspec.Struct):
    """One metric; its value is text, whatever it measures."""

    name: str = ""
    value: str = ""


class TrainerStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    """`status.trainerStatus` as a training reports it."""

    progress_percentage: Int32 | None = None
    estimated_remaining_seconds: Int32 | None = None
    metrics: list[Metric] | None = None
    last_updated_time: str | None = None


class Report(msgspec.Struct, rename="camel", omit_defaults=True):
    """The body of a post. Without a `trainer_status` it asks for nothing."""

    trainer_status: TrainerStatus | None = None


def parse_report(body: bytes) -> Report:
    """Read the first JSON value of a body; fields that nobody knows are dropped.

    Raises:
        UnreadableReport: it is no JSON object, or a value has another type.
    """
    try:
        value, _ = json.JSONDecoder().raw_decode(body.decode().lstrip(" \t\r\n"))
        report = msgspec.convert({} if value is None else value, Report)
        status = report.trainer_status
        if status is not None and status.last_updated_time is not None:
            status.last_updated_time = render_time(parse_time(status.last_updated_time))
    except (ValueError, RecursionError) as error:
        raise UnreadableReport(str(error)) from error
    if status is not None and not status.metrics:
        status.metrics = None
    return report


def render_report(report: Report) -> bytes:
    """The report as it was understood: the answer to a post that was accepted."""
    return msgspec.json.encode(report) + b"\n"


def build_trainer_status(status: TrainerStatus) -> Object:
    """The value of `status.trainerStatus`; a time that is not given is null, as it was sent."""
    built: Object = msgspec.to_builtins(status)
    return built | {"lastUpdatedTime": status.last_updated_time}


def find_report_errors(status: TrainerStatus) -> list[FieldError]:
    """What the TrainJob's schema forbids in a report, with paths from the TrainJob's root."""
    obj = {"status": {"trainerStatus": build_trainer_status(status)}}
    return find_errors(_SCHEMA, obj)
