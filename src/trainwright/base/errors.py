"""Every error that Trainwright raises on purpose.

TrainwrightError
├── InvalidObject          field errors of one object (also a ValueError)
├── ApiError               a Status of the wire: code, reason, message, details
│   ├── BadRequest 400   ├── Unauthorized 401   ├── Forbidden 403   ├── NotFound 404
│   ├── MethodNotAllowed 405   ├── NotAcceptable 406
│   ├── AlreadyExists 409   ├── Conflict 409   ├── Gone 410   ├── RequestTooLarge 413
│   ├── UnsupportedMediaType 415   ├── Invalid 422   ├── TooManyRequests 429
│   └── InternalError 500   ├── ServiceUnavailable 503   └── Timeout 504
├── Unreachable            no answer from the server (also a ConnectionError)
├── Unsupported            asked for something that this place cannot do
└── LocalRunError          the laptop could not start or keep a process
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_VALUE_CHARACTERS = 256
"""A value quoted in a message is cut here: objects can be a megabyte, terminals are not."""


class Reason(StrEnum):
    """Why a field was refused: `details.causes[].reason` of a Status."""

    INVALID = "FieldValueInvalid"
    REQUIRED = "FieldValueRequired"
    NOT_SUPPORTED = "FieldValueNotSupported"
    DUPLICATE = "FieldValueDuplicate"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    TYPE_INVALID = "FieldValueTypeInvalid"


_PHRASES = {
    Reason.INVALID: "Invalid value",
    Reason.REQUIRED: "Required value",
    Reason.NOT_SUPPORTED: "Unsupported value",
    Reason.DUPLICATE: "Duplicate value",
    Reason.FORBIDDEN: "Forbidden",
    Reason.TOO_LONG: "Too long",
    Reason.TOO_MANY: "Too many",
    Reason.TYPE_INVALID: "Invalid value",
}
_VALUELESS = frozenset({Reason.REQUIRED, Reason.FORBIDDEN, Reason.TOO_LONG, Reason.TOO_MANY})


def render_value(value: Any) -> str:
    """A JSON value as an error message quotes it, cut to a readable length."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= MAX_VALUE_CHARACTERS else text[:MAX_VALUE_CHARACTERS] + "..."


@dataclass(frozen=True, slots=True)
class FieldError:
    """One refused field. `path` is the JSON path, such as `spec.trainer.env[2].name`."""

    reason: Reason
    path: str
    value: Any = None
    detail: str = ""

    @property
    def message(self) -> str:
        """The text without the path: `Invalid value: 3: must be below 3`."""
        phrase = _PHRASES[self.reason]
        if self.reason not in _VALUELESS:
            phrase += f": {render_value(self.value)}"
        return f"{phrase}: {self.detail}" if self.detail else phrase

    def __str__(self) -> str:
        """`path: message`; the bare detail when the finding is about no field at all."""
        return f"{self.path}: {self.message}" if self.path else self.detail or self.message

    def to_cause(self) -> dict[str, Any]:
        """The entry of a Status' `details.causes`."""
        return {"reason": str(self.reason), "message": self.message, "field": self.path}


class TrainwrightError(Exception):
    """Root of every error that is raised on purpose."""


class InvalidObject(TrainwrightError, ValueError):
    """An object breaks its own rules; `errors` holds every finding."""

    def __init__(self, subject: str, errors: Sequence[FieldError]) -> None:
        self.subject = subject
        self.errors = tuple(errors)
        super().__init__(f"{subject} is invalid: " + render_errors(self.errors))


def render_errors(errors: Sequence[FieldError]) -> str:
    """One error as it is, several in brackets, as Kubernetes writes them."""
    texts = [str(error) for error in errors]
    return texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"


class Unsupported(TrainwrightError, NotImplementedError):
    """Something was asked for that this place cannot do; the message names the way out."""


class LocalRunError(TrainwrightError, RuntimeError):
    """The laptop could not start or keep a process."""


class Unreachable(TrainwrightError, ConnectionError):
    """The server gave no answer."""


class ApiError(TrainwrightError):
    """An answer of an API server that is a Status with `status: Failure`."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"

    def __init__(
        self,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        code: int | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details or {})
        self._says_details = details is not None
        self.status_code = self.code if code is None else code
        self.status_reason = self.reason if reason is None else reason

    def to_status(self) -> dict[str, Any]:
        """The Status object of the wire."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.status_reason,
            "code": self.status_code,
        }
        if self._says_details:
            status["details"] = self.details
        return status

    @staticmethod
    def from_status(status: Mapping[str, Any], http_code: int = 500) -> ApiError:
        """The typed error for a Status that a server sent."""
        code = int(status.get("code") or http_code)
        reason = str(status.get("reason") or "")
        kind = _BY_REASON.get(reason) or _BY_CODE.get(code, ApiError)
        return kind(
            str(status.get("message") or f"the server answered {code}"),
            details=status.get("details"),
            code=code,
            reason=reason or kind.reason,
        )


class BadRequest(ApiError):
    """400: the request could not be read."""

    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    """401: no valid token."""

    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):
    """403: an admission rule or missing right."""

    code, reason = 403, "Forbidden"


class NotFound(ApiError):
    """404."""

    code, reason = 404, "NotFound"


class MethodNotAllowed(ApiError):
    """405."""

    code, reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiError):
    """406: no media type that both sides speak."""

    code, reason = 406, "NotAcceptable"


class AlreadyExists(ApiError):
    """409: an object of that name is there."""

    code, reason = 409, "AlreadyExists"


class Conflict(ApiError):
    """409: the object changed, a precondition failed, or another manager owns the field."""

    code, reason = 409, "Conflict"


class Gone(ApiError):
    """410: the resourceVersion or continue token is too old; list again."""

    code, reason = 410, "Expired"


class RequestTooLarge(ApiError):
    """413."""

    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    """415."""

    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    """422: the object breaks rules; `details.causes` lists them."""

    code, reason = 422, "Invalid"


class TooManyRequests(ApiError):
    """429."""

    code, reason = 429, "TooManyRequests"


class InternalError(ApiError):
    """500."""


class ServiceUnavailable(ApiError):
    """503."""

    code, reason = 503, "ServiceUnavailable"


class Timeout(ApiError):
    """504."""

    code, reason = 504, "Timeout"


def _subclasses(kind: type[ApiError]) -> Iterable[type[ApiError]]:
    return kind.__subclasses__()


_BY_REASON = {kind.reason: kind for kind in _subclasses(ApiError)} | {"Gone": Gone}
_BY_CODE = {kind.code: kind for kind in _subclasses(ApiError) if kind is not AlreadyExists}
