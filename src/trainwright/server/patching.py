"""PATCH bodies: which types a kind takes, and what each makes of the live object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.base.errors import (
    BadRequest,
    FieldError,
    Invalid,
    Reason,
    RequestTooLarge,
)
from trainwright.base.objects import dig
from trainwright.machinery.api import PatchType
from trainwright.merge.json_patch import PatchError, apply_json_patch
from trainwright.merge.merge_patch import apply_merge_patch
from trainwright.merge.strategic import apply_strategic_patch
from trainwright.server import refusals
from trainwright.server.negotiation import unknown_format

if TYPE_CHECKING:
    from trainwright.base.objects import Json, Object
    from trainwright.server.pipeline import Writing


def check_patch(writing: Writing, type: PatchType) -> None:
    """Refuse a type that the kind does not take, and `force` without apply.

    Raises:
        UnsupportedMediaType: strategic merge patch of a kind from a CRD. Invalid: force.
    """
    if type not in writing.served.patch_types:
        raise unknown_format(writing.served.patch_types)
    if writing.options.force and type is not PatchType.APPLY:
        raise refusals.forbidden_option(
            "PatchOptions", "force", "may not be specified for non-apply patch"
        )


def apply_patch(writing: Writing, type: PatchType, live: Object, body: Json) -> Object:
    """The live object with the patch applied; neither is edited.

    Raises:
        BadRequest: the patch cannot be read. Invalid: it does not fit the object.
        RequestTooLarge: more operations than a JSON patch may have.
    """
    if type is not PatchType.JSON and not isinstance(body, dict):
        raise BadRequest(f"the body of a {type} must be an object")
    try:
        match type:
            case PatchType.JSON:
                new = apply_json_patch(live, body)
            case PatchType.STRATEGIC:
                new = apply_strategic_patch(live, body, writing.served.schema)
            case _:
                new = apply_merge_patch(live, body)
    except PatchError as error:
        if error.status == 400:
            raise BadRequest(f"error decoding patch: {error}") from error
        if error.status == 413:
            raise RequestTooLarge(str(error)) from error
        raise Invalid(
            f"the server rejected our request due to an error in our request: {error}"
        ) from error
    if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
        raise BadRequest("the patched object has no metadata")
    result: Object = new
    return result


def check_config(writing: Writing, namespace: str, name: str, body: Json) -> Object:
    """The body of an apply, with name and namespace filled in.

    Raises:
        BadRequest: it is no object of that kind and name.
    """
    kind = writing.asked
    if not isinstance(body, dict):
        raise BadRequest("the body of an apply must be an object")
    if (body.get("apiVersion"), body.get("kind")) != (kind.api_version, kind.kind):
        raise BadRequest(
            f"the body of an apply must have apiVersion {kind.api_version} and kind {kind.kind}, "
            f"not {body.get('apiVersion')} and {body.get('kind')}"
        )
    metadata = dict(body.get("metadata") or {})
    if metadata.get("managedFields"):
        raise BadRequest("metadata.managedFields must be nil")
    if metadata.get("name", name) != name:
        raise BadRequest(
            f"the name of the object ({metadata['name']}) does not match the name on the URL "
            f"({name})"
        )
    if namespace and metadata.get("namespace", namespace) != namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata["name"] = name
    if namespace:
        metadata["namespace"] = namespace
    return {**body, "metadata": metadata}


def check_body(writing: Writing, namespace: str, obj: Json) -> Object:
    """A body for create or replace as an object with its own `metadata` dict.

    Raises:
        BadRequest: wrong kind, or another namespace than the request's.
    """
    kind = writing.asked
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata") or {}, dict):
        raise BadRequest(f"the body of the request must be an object of kind {kind.kind}")
    for field, wanted in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        if obj.get(field) and obj[field] != wanted:
            what = "API version" if field == "apiVersion" else "kind"
            raise BadRequest(
                f"the {what} in the data ({obj[field]}) does not match the expected {what} ({wanted})"
            )
    metadata = dict(obj.get("metadata") or {})
    for field in ("name", "namespace", "generateName", "resourceVersion", "uid"):
        if not isinstance(metadata.get(field) or "", str):
            raise BadRequest(f"metadata.{field} must be a string")
    if kind.namespaced:
        if (metadata.get("namespace") or namespace) != namespace:
            raise BadRequest(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
        metadata["namespace"] = namespace
    elif metadata.pop("namespace", ""):
        raise BadRequest("namespace is not allowed on this type")
    return {**obj, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}


def check_versions(writing: Writing, live: Object, new: Object, *, replaces: bool = False) -> None:
    """Refuse a write that was computed from another object or state.

    Raises:
        Conflict: uid or resourceVersion differ. Invalid: PUT without one where it is needed, or a
            patch that would change the uid.
    """
    kind, name = writing.asked, str(live["metadata"]["name"])
    uid, version = dig(new, "metadata", "uid"), dig(new, "metadata", "resourceVersion")
    if uid and uid != live["metadata"]["uid"] and replaces:
        raise refusals.conflict(
            kind,
            name,
            f"Precondition failed: UID in precondition: {uid}, "
            f"UID in object meta: {live['metadata']['uid']}",
        )
    if version and version != live["metadata"]["resourceVersion"]:
        raise refusals.modified(kind, name)
    if uid and uid != live["metadata"]["uid"]:
        error = FieldError(Reason.INVALID, "metadata.uid", uid, "field is immutable")
        raise refusals.invalid(kind, name, [error])
    if not version and replaces and writing.served.custom:
        error = FieldError(
            Reason.INVALID,
            "metadata.resourceVersion",
            "",
            "must be specified for an update",
        )
        raise refusals.invalid_version(kind, name, error)
