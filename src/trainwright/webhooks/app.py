"""The ASGI app of the webhooks: an AdmissionReview in, one out, whatever the object looks like."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import msgspec

from trainwright.base.errors import (
    ApiError,
    BadRequest,
    InternalError,
    MethodNotAllowed,
    NotFound,
    RequestTooLarge,
    Timeout,
    UnsupportedMediaType,
)
from trainwright.machinery.asgi import (
    JSON,
    ClientGone,
    declared_length,
    read_body,
    read_headers,
    send_json,
)
from trainwright.webhooks.configurations import WEBHOOKS, Webhook
from trainwright.webhooks.reviews import (
    Review,
    build_allowance,
    build_denial,
    find_objects,
    parse_review,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainwright.base.objects import Object
    from trainwright.machinery.asgi import Receive, Scope, Send
    from trainwright.webhooks.judgement import Judge

logger = logging.getLogger(__name__)

MAX_BODY_BYTES = 7 * 1024 * 1024
"""Two objects of the largest size that an API server takes, and what is around them."""
REVIEW_S = 9.0
"""An answer after this would come too late: the API server waits 10 s."""


class WebhookApp:
    """Answers reviews at the paths of `WEBHOOKS`."""

    def __init__(self, judge: Judge, *, review_s: float = REVIEW_S) -> None:
        self._judge = judge
        self._review_s = review_s
        self._by_path: Mapping[str, Webhook] = {webhook.path: webhook for webhook in WEBHOOKS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; whatever happens, the answer is JSON."""
        if scope["type"] != "http":
            return
        try:
            async with asyncio.timeout(self._review_s):
                answer = await self._answer(scope, receive)
        except ClientGone:
            return
        except TimeoutError:
            logger.warning("%s: no whole review within %.0f s", scope["path"], self._review_s)
            await _refuse(send, Timeout("the review did not arrive in time"))
        except ApiError as error:
            await _refuse(send, error)
        except Exception:  # the outermost edge: the API server waits for an answer
            logger.exception("%s: a review could not be read", scope["path"])
            await _refuse(send, InternalError("the webhook failed; its log says more"))
        else:
            await send_json(send, 200, answer)

    async def _answer(self, scope: Scope, receive: Receive) -> bytes:
        webhook = self._by_path.get(scope["path"])
        if webhook is None:
            raise NotFound(f"there is no webhook at {scope['path']}")
        if scope["method"] != "POST":
            raise MethodNotAllowed(f"{scope['method']} is not understood; POST an AdmissionReview")
        headers = read_headers(scope)
        media = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip()
        if media.lower() != JSON:
            raise UnsupportedMediaType(f'content type "{media}" is not understood; send {JSON}')
        if declared_length(headers) > MAX_BODY_BYTES:
            raise RequestTooLarge(f"the review is larger than {MAX_BODY_BYTES} bytes")
        body = await read_body(receive, MAX_BODY_BYTES)
        review = parse_review(body)
        try:
            answer = msgspec.json.encode(await self._judge_safely(webhook, review, len(body)))
        except ValueError as error:  # such as an object nested too deeply to be written
            raise BadRequest(f"the review cannot be answered: {error}") from error
        return answer

    async def _judge_safely(self, webhook: Webhook, review: Review, size: int) -> Object:
        """The answer to a review; a fault of ours denies it and says so."""
        try:
            return await self._review(webhook, review, size)
        except BadRequest as error:
            return build_denial(review, error)
        except ApiError as error:
            logger.warning("%s: %s", webhook.path, error)
            return build_denial(review, error)
        except Exception as error:
            what = f"{webhook.kind.kind} {review.asked.get('name')!r}"
            logger.exception("%s: the rules failed over %s", webhook.path, what)
            text = f"the rules failed over this object: {type(error).__name__}: {error}"
            return build_denial(review, InternalError(text))

    async def _review(self, webhook: Webhook, review: Review, size: int) -> Object:
        if not review.is_judged:
            return build_allowance(review)
        new, old = find_objects(review, webhook.kind)
        judge = self._judge.default if webhook.mutates else self._judge.validate
        judgement = await judge(webhook.kind, new, old, size)
        if judgement.error is not None:
            return build_denial(review, judgement.error, warnings=judgement.warnings)
        return build_allowance(review, warnings=judgement.warnings, after=judgement.after)


async def _refuse(send: Send, error: ApiError) -> None:
    await send_json(send, error.status_code, msgspec.json.encode(error.to_status()))
