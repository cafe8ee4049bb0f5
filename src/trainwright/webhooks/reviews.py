"""AdmissionReviews of `admission.k8s.io/v1`: reading what is asked, writing what is answered. Pure."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from trainwright.base.errors import BadRequest
from trainwright.base.objects import dig
from trainwright.merge.json_difference import build_json_patch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.api.kinds import Kind
    from trainwright.base.errors import ApiError
    from trainwright.base.objects import Json, Object

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
JUDGED = ("CREATE", "UPDATE")
OPERATIONS = (*JUDGED, "DELETE", "CONNECT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One question of an API server."""

    uid: str
    operation: str
    subresource: str
    asked: Object
    """The `request` as it came."""

    @property
    def is_judged(self) -> bool:
        """Whether there are rules for it: creations and updates of the object itself."""
        return self.operation in JUDGED and not self.subresource


def parse_review(body: bytes) -> Review:
    """Read the body of a request.

    Raises:
        BadRequest: it is no AdmissionReview with a request, in words.
    """
    try:
        document: Json = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"the body is no JSON document: {error}") from error
    if not isinstance(document, dict):
        raise BadRequest(f"the body is no object; an {KIND} of {API_VERSION} was wanted")
    seen = (document.get("apiVersion"), document.get("kind"))
    if seen != (API_VERSION, KIND):
        raise BadRequest(
            f"the body is {seen[1]!r} of {seen[0]!r}; an {KIND} of {API_VERSION} was wanted"
        )
    request = document.get("request")
    if not isinstance(request, dict):
        raise BadRequest("request: an object was wanted")
    uid, operation = request.get("uid"), request.get("operation")
    if not isinstance(uid, str) or not uid:
        raise BadRequest("request.uid: a text was wanted")
    if operation not in OPERATIONS:
        raise BadRequest(f"request.operation: {operation!r}; wanted one of {', '.join(OPERATIONS)}")
    subresource = request.get("subResource") or ""
    return Review(uid=uid, operation=operation, subresource=str(subresource), asked=request)


def find_objects(review: Review, kind: Kind) -> tuple[Object, Object | None]:
    """The object to judge, and for an update the stored one, checked for what all rules rely on.

    Raises:
        BadRequest: they are missing, or of another kind.
    """
    new = _find_object(review, "object", kind)
    old = _find_object(review, "oldObject", kind) if review.operation == "UPDATE" else None
    return new, old


def _find_object(review: Review, field: str, kind: Kind) -> Object:
    found = review.asked.get(field)
    if not isinstance(found, dict):
        raise BadRequest(f"request.{field}: a {kind.kind} was wanted")
    seen = (found.get("apiVersion"), found.get("kind"))
    if seen != (kind.api_version, kind.kind):
        raise BadRequest(
            f"request.{field}: {seen[1]!r} of {seen[0]!r}; "
            f"a {kind.kind} of {kind.api_version} was wanted"
        )
    metadata = found.get("metadata")
    if not isinstance(metadata, dict):
        raise BadRequest(f"request.{field}.metadata: an object was wanted")
    namespace = dig(review.asked, "namespace")
    if kind.namespaced and namespace and not metadata.get("namespace"):
        return {**found, "metadata": {**metadata, "namespace": namespace}}
    return found


def build_allowance(
    review: Review, *, warnings: Sequence[str] = (), after: Object | None = None
) -> Object:
    """The answer that lets the object pass, changed into `after` when that is given."""
    response: Object = {"uid": review.uid, "allowed": True}
    patch = build_json_patch(review.asked.get("object"), after) if after is not None else []
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(patch)).decode()
    return _build_answer(response, warnings)


def build_denial(review: Review, error: ApiError, *, warnings: Sequence[str] = ()) -> Object:
    """The answer that refuses the object; the API server puts the webhook's name before the text."""
    status = error.to_status()
    del status["kind"], status["apiVersion"]
    return _build_answer({"uid": review.uid, "allowed": False, "status": status}, warnings)


def _build_answer(response: Object, warnings: Sequence[str]) -> Object:
    if warnings:
        response["warnings"] = list(dict.fromkeys(warnings))
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}
