"""Refusals of the registry as Kubernetes words them, built in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.base.errors import (
    AlreadyExists,
    Conflict,
    FieldError,
    Forbidden,
    Invalid,
    NotFound,
    Reason,
    render_errors,
)
from trainwright.base.objects import name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.api.kinds import Kind
    from trainwright.base.errors import ApiError
    from trainwright.base.objects import Object


def _details(kind: Kind, name: str) -> dict[str, Any]:
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    return {key: value for key, value in details.items() if value}


def not_found(kind: Kind, name: str) -> ApiError:
    """404 for one object."""
    return NotFound(f'{kind.resource} "{name}" not found', details=_details(kind, name))


def already_exists(kind: Kind, name: str, hint: str = "") -> ApiError:
    """409 for a name that is taken."""
    text = f'{kind.resource} "{name}" already exists' + (f", {hint}" if hint else "")
    return AlreadyExists(text, details=_details(kind, name))


def conflict(kind: Kind, name: str, cause: str) -> ApiError:
    """409 for a write that was computed from something else than the live object."""
    text = f'Operation cannot be fulfilled on {kind.resource} "{name}": {cause}'
    return Conflict(text, details=_details(kind, name))


def modified(kind: Kind, name: str) -> ApiError:
    """409 for a stale resourceVersion."""
    cause = (
        "the object has been modified; please apply your changes to the latest version "
        "and try again"
    )
    return conflict(kind, name, cause)


def forbidden(kind: Kind, name: str, cause: str, causes: Sequence[dict[str, Any]] = ()) -> ApiError:
    """403 by a rule that is no field's fault."""
    details = _details(kind, name)
    if causes:
        details["causes"] = list(causes)
    return Forbidden(f'{kind.resource} "{name}" is forbidden: {cause}', details=details)


def terminating(kind: Kind, name: str, namespace: str) -> ApiError:
    """403 for something new in a namespace that goes."""
    text = f"unable to create new content in namespace {namespace} because it is being terminated"
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    return forbidden(kind, name, text, [cause])


def invalid(kind: Kind, name: str, errors: Sequence[FieldError]) -> ApiError:
    """422 with every finding."""
    details = _details(kind, name) | {"kind": kind.kind}
    details["causes"] = [error.to_cause() for error in errors]
    text = f'{kind.qualified_kind} "{name}" is invalid: {render_errors(errors)}'
    return Invalid(text, details=details)


def invalid_version(kind: Kind, name: str, error: FieldError) -> ApiError:
    """422 for a PUT without a resourceVersion: this one names the resource, not the kind."""
    details = _details(kind, name) | {"causes": [error.to_cause()]}
    return Invalid(f'{kind.resource} "{name}" is invalid: {error}', details=details)


def other_kind(kind: Kind, obj: Object) -> ApiError:
    """422 for a custom resource of another kind than its path."""
    seen = str(obj["kind"])
    error = FieldError(Reason.INVALID, "kind", seen, f"must be {kind.kind}")
    details = _details(kind, name_of(obj)) | {"kind": seen, "causes": [error.to_cause()]}
    text = f'{seen}.{kind.group} "{name_of(obj)}" is invalid: {error}'
    return Invalid(text, details=details)


def unmet_precondition(kind: Kind, name: str, cause: str) -> ApiError:
    """409 for a delete of another object than was seen: this one names the kind."""
    error = conflict(kind, name, cause)
    error.details["kind"] = kind.kind
    return error


def invalid_options(
    options_kind: str, errors: Sequence[FieldError], group: str = "meta.k8s.io"
) -> ApiError:
    """422 for query options such as `dryRun=Some`."""
    causes = [error.to_cause() for error in errors]
    return Invalid(
        f'{options_kind}.{group} "" is invalid: {render_errors(errors)}',
        details={"group": group, "kind": options_kind, "causes": causes},
    )


def forbidden_option(options_kind: str, path: str, detail: str) -> ApiError:
    """422 for an option that does not go with the others."""
    error = FieldError(Reason.FORBIDDEN, path, detail=detail)
    return invalid_options(options_kind, [error])


def denied(webhook_name: str, errors: Sequence[FieldError]) -> ApiError:
    """403 where a real cluster refuses by webhook; such answers carry no causes."""
    return Forbidden(_denied_by(webhook_name) + render_errors(errors))


def denied_as_invalid(
    webhook_name: str, kind: Kind, name: str, errors: Sequence[FieldError]
) -> ApiError:
    """422 where the webhook of a real cluster answers with the Status of an invalid object."""
    found = invalid(kind, name, errors)
    return Invalid(_denied_by(webhook_name) + found.message, details=found.details)


def _denied_by(webhook_name: str) -> str:
    return f'admission webhook "{webhook_name}" denied the request: '
