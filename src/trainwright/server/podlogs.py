"""`pods/log`: which container's log is asked for, and the stream of it.

The log's text comes from a `LogProvider`, which the node implements. What can be answered from the
Pod alone (unknown container, not started yet, no previous instance) is answered here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from trainwright.base.errors import BadRequest, FieldError, Reason
from trainwright.base.objects import Object, ObjectView, dig, name_of
from trainwright.base.times import parse_time
from trainwright.server import refusals

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from trainwright.server.http import HttpRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """What part of which log is asked for."""

    container: str
    follow: bool = False
    """Stream until this instance of the container ends."""
    previous: bool = False
    """The instance before the current one."""
    timestamps: bool = False
    """Put the time (RFC 3339 with nanoseconds, UTC) and a space before each line."""
    tail_lines: int | None = None
    """Only the last lines; 0 is none, though `follow` still goes on."""
    since: datetime | None = None
    """Only lines from then on."""


class LogProvider(Protocol):
    """Where the logs are: implemented by the node."""

    def read_log(self, pod: Object, options: LogOptions) -> AsyncIterator[bytes]:
        """Chunks of the log, both streams in the order of arrival.

        Ends at the end of what is there, or with `follow` when the instance ends; nothing when
        there is no log (yet). Closing the iterator frees everything.
        """
        ...

    def find_gap(self, pod: Object, options: LogOptions) -> str:
        """One sentence when the log's first lines are asked for and gone; else nothing."""
        ...


def parse_log_request(
    request: HttpRequest, pod: ObjectView, now: datetime
) -> tuple[LogOptions, int | None]:
    """The options of a log request, and the limit in bytes.

    Raises:
        BadRequest: the container is not named, unknown, or has not run.
        Invalid: options that contradict each other or are out of range.
    """
    limit_bytes = request.number("limitBytes")
    since_s = request.number("sinceSeconds")
    tail_lines = request.number("tailLines")
    _check_ranges(request, limit_bytes=limit_bytes, since_s=since_s, tail_lines=tail_lines)
    since = now - timedelta(seconds=since_s) if since_s is not None else None
    if request.argument("sinceTime"):
        since = _parse_since(request.argument("sinceTime"))
    options = LogOptions(
        container=choose_container(pod, request.argument("container")),
        follow=request.flag("follow"),
        previous=request.flag("previous"),
        timestamps=request.flag("timestamps"),
        tail_lines=tail_lines,
        since=since,
    )
    return options, limit_bytes


def _check_ranges(
    request: HttpRequest, *, limit_bytes: int | None, since_s: int | None, tail_lines: int | None
) -> None:
    errors = []
    if limit_bytes is not None and limit_bytes < 1:
        errors.append(
            FieldError(Reason.INVALID, "limitBytes", limit_bytes, "must be greater than 0")
        )
    if since_s is not None and since_s < 1:
        errors.append(FieldError(Reason.INVALID, "sinceSeconds", since_s, "must be greater than 0"))
    if tail_lines is not None and tail_lines < 0:
        detail = "must be greater than or equal to 0"
        errors.append(FieldError(Reason.INVALID, "tailLines", tail_lines, detail))
    if since_s is not None and request.argument("sinceTime"):
        detail = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        errors.append(FieldError(Reason.FORBIDDEN, "", detail=detail))
    if request.argument("stream"):
        detail = "stdout and stderr are kept as one log"
        errors.append(FieldError(Reason.FORBIDDEN, "stream", detail=detail))
    if errors:
        raise refusals.invalid_options("PodLogOptions", errors)


def _parse_since(text: str) -> datetime:
    try:
        return parse_time(text).astimezone(UTC)
    except ValueError as error:
        raise BadRequest(f'query parameter sinceTime: "{text}" is no RFC 3339 time') from error


def choose_container(pod: ObjectView, asked: str) -> str:
    """The container that is meant; it may be left out when the Pod has one only.

    Raises:
        BadRequest: not named though there are several, or not there; the message lists them.
    """
    main = [c["name"] for c in dig(pod, "spec", "containers", default=[])]
    init = [c["name"] for c in dig(pod, "spec", "initContainers", default=[])]
    if asked:
        if asked in main or asked in init:
            return asked
        raise BadRequest(f"container {asked} is not valid for pod {name_of(pod)}")
    if len(main) == 1:
        return str(main[0])
    choices = f"choose one of: [{' '.join(main)}]"
    if init:
        choices += f" or one of the init containers: [{' '.join(init)}]"
    raise BadRequest(f"a container name must be specified for pod {name_of(pod)}, {choices}")


def has_log(pod: ObjectView, options: LogOptions) -> bool:
    """Whether there is a log to read; False while the Pod has no node.

    Raises:
        BadRequest: the container waits and never ran, or no previous instance is there.
    """
    if not dig(pod, "spec", "nodeName"):
        return False
    status = _container_status(pod, options.container)
    subject = f'container "{options.container}" in pod "{name_of(pod)}"'
    ran_before = dig(status, "lastState", "terminated") is not None
    if options.previous:
        if not ran_before:
            raise BadRequest(f"previous terminated {subject} not found")
        return True
    started = any(dig(status, "state", key) is not None for key in ("running", "terminated"))
    if not started and not ran_before:
        reason = dig(status, "state", "waiting", "reason", default="ContainerCreating")
        raise BadRequest(f"{subject} is waiting to start: {reason}")
    return True


def _container_status(pod: ObjectView, container: str) -> Mapping[str, object]:
    statuses: Sequence[Mapping[str, object]] = [
        *dig(pod, "status", "containerStatuses", default=[]),
        *dig(pod, "status", "initContainerStatuses", default=[]),
    ]
    return next((s for s in statuses if s.get("name") == container), {})


async def limit_log(chunks: AsyncIterator[bytes], limit_bytes: int | None) -> AsyncIterator[bytes]:
    """Cut a log at `limit_bytes`; else end it with a newline, since clients drop half a line."""
    left = limit_bytes
    last = b"\n"
    try:
        async for chunk in chunks:
            part = chunk if left is None else chunk[:left]
            if part:
                yield part
                last = part
            if left is not None:
                left -= len(part)
                if left <= 0:
                    return
        if not last.endswith(b"\n"):
            yield b"\n"
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()
