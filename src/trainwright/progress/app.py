"""The ASGI app of the status server: one path, one method, the public protocol's answers.

Source: Trainer 2.3, status server, whose recorded answers the tests hold this against.
"""

from __future__ import annotations

import logging
import math
import re
from typing import TYPE_CHECKING

import msgspec

from trainwright.api.kinds import TRAINJOB
from trainwright.base.errors import (
    ApiError,
    Forbidden,
    InternalError,
    Invalid,
    NotFound,
    RequestTooLarge,
    TooManyRequests,
    Unreachable,
    render_errors,
)
from trainwright.core.progress.desk import DEFAULT_PACE, Desk
from trainwright.core.progress.limit import DEFAULT_ALLOWANCE, PostLimit
from trainwright.core.progress.report import (
    MAX_BODY_BYTES,
    UnreadableReport,
    find_report_errors,
    parse_report,
    render_report,
)
from trainwright.machinery.asgi import (
    ClientGone,
    declared_length,
    read_body,
    read_headers,
    send_json,
)
from trainwright.progress.access import Access
from trainwright.progress.writer import StatusWriter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainwright.base.times import Clock
    from trainwright.core.progress.desk import Pace
    from trainwright.core.progress.limit import Allowance
    from trainwright.core.progress.report import Report
    from trainwright.machinery.api import Api
    from trainwright.machinery.asgi import Receive, Scope, Send
    from trainwright.progress.access import TokenReader

logger = logging.getLogger(__name__)

_PATH = re.compile(
    rf"/apis/{re.escape(TRAINJOB.api_version)}/namespaces/([^/]+)/trainjobs/([^/]+)/status"
)


class ProgressApp:
    """Takes posts; `run` writes them."""

    def __init__(
        self,
        api: Api,
        tokens: TokenReader,
        clock: Clock,
        *,
        pace: Pace = DEFAULT_PACE,
        allowance: Allowance = DEFAULT_ALLOWANCE,
    ) -> None:
        self._clock = clock
        self._access = Access(api, tokens, clock)
        self._writer = StatusWriter(api, clock, Desk(pace), self._access.forget)
        self._limit = PostLimit(allowance)

    @staticmethod
    def serves(scope: Scope) -> bool:
        """Whether a request is a progress post: an API server has no other use for it."""
        return (
            scope["type"] == "http"
            and scope["method"] == "POST"
            and _PATH.fullmatch(scope["path"]) is not None
        )

    async def run(self) -> None:
        """Write what was posted until closed, then what is left."""
        await self._writer.run()

    async def close(self) -> None:
        """Let `run` end; called by the server that stops."""
        self._writer.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; whatever happens, the answer is JSON."""
        if scope["type"] != "http":
            return
        try:
            await send_json(send, 200, render_report(await self._take(scope, receive)))
        except ClientGone:
            return
        except ApiError as error:
            await _refuse(send, error)
        except Unreachable as error:
            logger.warning("a progress post failed: %s", error)
            await _refuse(send, InternalError("Internal error"))
        except Exception:  # the outermost edge: a post must be answered
            logger.exception("a progress post failed")
            await _refuse(send, InternalError("Internal Server Error"))

    async def _take(self, scope: Scope, receive: Receive) -> Report:
        headers = read_headers(scope)
        if declared_length(headers) > MAX_BODY_BYTES:
            raise RequestTooLarge("Payload too large")
        match = _PATH.fullmatch(scope["path"])
        if match is None or scope["method"] != "POST":
            raise NotFound("Not found")
        namespace, name = match.groups()
        token = _find_token(headers)
        if not token or not await self._may_report(token, namespace, name):
            raise Forbidden("Forbidden")
        report = await _read_report(receive)
        if report.trainer_status is None:
            return report
        errors = find_report_errors(report.trainer_status)
        if errors:
            text = f'{TRAINJOB.qualified_kind} "{name}" is invalid: {render_errors(errors)}'
            raise Invalid(text)
        subject = await self._access.find_subject(namespace, name)
        if subject is None:
            raise NotFound("Train job not found")
        wait_s = self._limit.take(subject, self._clock.monotonic())
        if wait_s:
            seconds = math.ceil(wait_s)
            raise TooManyRequests(
                f"Too many posts for this train job; the next one is taken in {seconds} s",
                details={"retryAfterSeconds": seconds},
            )
        self._writer.put(subject, report.trainer_status)
        return report

    async def _may_report(self, token: str, namespace: str, name: str) -> bool:
        try:
            return await self._access.may_report(token, namespace, name)
        except ApiError as error:
            raise InternalError("Internal error") from error


def _find_token(headers: Mapping[bytes, bytes]) -> str:
    words = headers.get(b"authorization", b"").decode("latin-1").split()
    return words[1] if len(words) == 2 and words[0].lower() == "bearer" else ""


async def _read_report(receive: Receive) -> Report:
    try:
        return parse_report(await read_body(receive, MAX_BODY_BYTES))
    except (RequestTooLarge, UnreadableReport) as error:
        raise Invalid("Invalid payload") from error


async def _refuse(send: Send, error: ApiError) -> None:
    """Answer with a Status as the public server writes it: without apiVersion and kind."""
    status = {
        "metadata": {},
        "status": "Failure",
        "message": error.message,
        "reason": error.status_reason,
        "code": error.status_code,
    }
    seconds = error.details.get("retryAfterSeconds")
    headers = [(b"retry-after", str(seconds).encode())] if seconds else []
    await send_json(send, error.status_code, msgspec.json.encode(status) + b"\n", headers)
