"""Reviews: whoever has a token of this installation may do everything, and is told so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.api.kinds import REVIEW_KINDS, Kind
from trainwright.base.errors import BadRequest
from trainwright.base.objects import dig
from trainwright.server.bodies import decode_body
from trainwright.server.http import Answer, render_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.server.backing import Backing
    from trainwright.server.http import HttpRequest


def find_review_kind(parts: Sequence[str]) -> Kind | None:
    """The review behind `apis/<group>/v1/<plural>`."""
    match parts:
        case ["apis", group, "v1", plural]:
            return next((k for k in REVIEW_KINDS if (k.group, k.plural) == (group, plural)), None)
    return None


async def create_review(backing: Backing, request: HttpRequest, kind: Kind) -> Answer:
    """POST of a review; nothing is stored."""
    review = decode_body(request.headers.get("content-type", ""), await request.body())
    if not isinstance(review, dict):
        raise BadRequest(f"the body of the request is no {kind.kind} object")
    answer = {
        **review,
        "kind": kind.kind,
        "apiVersion": kind.api_version,
        "metadata": review.get("metadata") or {},
        "status": _build_status(backing, request, kind, review),
    }
    return render_json(answer, 201)


def _build_status(
    backing: Backing, request: HttpRequest, kind: Kind, review: dict[str, Any]
) -> dict[str, Any]:
    match kind.kind:
        case "SelfSubjectReview":
            return {"userInfo": request.user.to_user_info()}
        case "TokenReview":
            user = backing.authenticator.find_user(str(dig(review, "spec", "token", default="")))
            if user is None:
                return {"authenticated": False, "user": {}, "error": "token not recognised"}
            return {"authenticated": True, "user": user.to_user_info()}
        case "SelfSubjectRulesReview":
            return {
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": False,
            }
    return {"allowed": True, "reason": "this server stores access rules but does not enforce them"}
