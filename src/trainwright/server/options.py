"""Query strings and headers read into what the registry takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from trainwright.base.errors import BadRequest, FieldError, Reason
from trainwright.base.objects import dig
from trainwright.machinery.api import DeleteOptions
from trainwright.server import refusals
from trainwright.server.bodies import decode_body
from trainwright.server.http import parse_flag
from trainwright.server.requests import ListOptions, WatchOptions, WriteOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.server.http import HttpRequest

FIELD_VALIDATIONS = ("Ignore", "Warn", "Strict")
MAX_MANAGER_CHARACTERS = 128


def parse_list_options(request: HttpRequest) -> ListOptions:
    """The options of a list.

    Raises:
        Invalid: an option that only a watch has.
        BadRequest: a limit that is no number.
    """
    if parse_flag("sendInitialEvents", request.argument("sendInitialEvents")) is not None:
        detail = "sendInitialEvents is forbidden for list"
        errors = [FieldError(Reason.FORBIDDEN, "sendInitialEvents", detail=detail)]
        raise refusals.invalid_options("ListOptions", errors)
    return ListOptions(
        label_selector=request.argument("labelSelector"),
        field_selector=request.argument("fieldSelector"),
        limit=max(request.number("limit") or 0, 0),
        continue_token=request.argument("continue"),
        resource_version=request.argument("resourceVersion"),
        resource_version_match=request.argument("resourceVersionMatch"),
    )


def parse_watch_options(request: HttpRequest, *, name: str = "") -> WatchOptions:
    """The options of a watch; `name` narrows it to one object."""
    selector = request.argument("fieldSelector")
    if name:
        selector = f"metadata.name={name}" + (f",{selector}" if selector else "")
    timeout_s = request.number("timeoutSeconds")
    return WatchOptions(
        label_selector=request.argument("labelSelector"),
        field_selector=selector,
        resource_version=request.argument("resourceVersion"),
        resource_version_match=request.argument("resourceVersionMatch"),
        send_initial_events=parse_flag("sendInitialEvents", request.argument("sendInitialEvents")),
        allow_bookmarks=request.flag("allowWatchBookmarks"),
        timeout_s=float(timeout_s) if timeout_s and timeout_s > 0 else None,
    )


def parse_write_options(
    request: HttpRequest, options_kind: str, decode_findings: Sequence[str] = ()
) -> WriteOptions:
    """The options of a write; `options_kind` names them in messages, such as `PatchOptions`.

    Raises:
        Invalid: 422 with every option that is wrong.
    """
    errors: list[FieldError] = []
    validation = request.argument("fieldValidation") or "Warn"
    if validation not in FIELD_VALIDATIONS:
        supported = ", ".join(f'"{value}"' for value in FIELD_VALIDATIONS)
        detail = f"supported values: {supported}"
        errors.append(FieldError(Reason.NOT_SUPPORTED, "fieldValidation", validation, detail))
    errors += _find_dry_run_errors(request.query.get("dryRun", ()))
    if errors:
        raise refusals.invalid_options(options_kind, errors)
    return WriteOptions(
        field_manager=request.argument("fieldManager") or default_manager(request),
        dry_run=bool(request.query.get("dryRun")),
        field_validation=cast("Literal['Ignore', 'Warn', 'Strict']", validation),
        force=request.flag("force"),
        user=request.user.name,
        decode_findings=decode_findings,
    )


def _find_dry_run_errors(values: Sequence[str]) -> list[FieldError]:
    return [
        FieldError(Reason.NOT_SUPPORTED, "dryRun", value, 'supported values: "All"')
        for value in values
        if value != "All"
    ]


def default_manager(request: HttpRequest) -> str:
    """The field manager of a client that names none: its User-Agent up to the first slash."""
    agent = request.headers.get("user-agent", "").partition("/")[0]
    manager = "".join(c for c in agent if c.isprintable())[:MAX_MANAGER_CHARACTERS]
    return manager or "unknown"


async def read_delete_options(request: HttpRequest) -> tuple[DeleteOptions, WriteOptions]:
    """The options of a delete, from the body where there is one, else from the query.

    Raises:
        Invalid: an unknown policy, or both the old and the new way to name one.
    """
    body = await _read_delete_body(request)
    dry_run = list(body.get("dryRun") or request.query.get("dryRun", ()))
    errors = _find_dry_run_errors(dry_run)
    orphan = body.get("orphanDependents")
    if orphan is None:
        orphan = parse_flag("orphanDependents", request.argument("orphanDependents"))
    policy = body.get("propagationPolicy") or request.argument("propagationPolicy") or None
    if orphan is not None and policy is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(FieldError(Reason.INVALID, "propagationPolicy", policy, detail))
    if policy not in {None, "Background", "Foreground", "Orphan"}:
        detail = 'supported values: "Foreground", "Background", "Orphan"'
        errors.append(FieldError(Reason.NOT_SUPPORTED, "propagationPolicy", policy, detail))
    grace = body.get("gracePeriodSeconds")
    if grace is None:
        grace = request.number("gracePeriodSeconds")
    if grace is not None and not isinstance(grace, int):
        errors.append(
            FieldError(Reason.TYPE_INVALID, "gracePeriodSeconds", grace, "must be a number")
        )
    if errors:
        raise refusals.invalid_options("DeleteOptions", errors)
    if orphan is not None:
        policy = "Orphan" if orphan else "Background"
    options = DeleteOptions(
        propagation=policy,
        grace_period_s=None if grace is None else max(grace, 0),
        uid=dig(body, "preconditions", "uid"),
        resource_version=dig(body, "preconditions", "resourceVersion"),
    )
    write = WriteOptions(
        field_manager=default_manager(request), dry_run=bool(dry_run), user=request.user.name
    )
    return options, write


async def _read_delete_body(request: HttpRequest) -> dict[str, Any]:
    raw = await request.body()
    if not raw.strip():
        return {}
    body = decode_body(request.headers.get("content-type", ""), raw)
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise BadRequest("the body of a delete is a DeleteOptions object")
    return body
