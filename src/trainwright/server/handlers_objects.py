"""Handlers of get, list, create, update, patch and delete: HTTP in, the registry's answer out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from trainwright.base.errors import BadRequest, FieldError, Reason
from trainwright.machinery.api import PatchType
from trainwright.server import refusals
from trainwright.server.bodies import (
    decode_body,
    decode_json,
    decode_json_or_yaml,
    find_duplicate_fields,
)
from trainwright.server.http import Answer, render_json
from trainwright.server.negotiation import require_media_type
from trainwright.server.options import (
    parse_list_options,
    parse_write_options,
    read_delete_options,
)
from trainwright.server.rendering import object_form, render_page, render_stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object
    from trainwright.server.backing import Backing
    from trainwright.server.http import HttpRequest
    from trainwright.server.requests import Written
    from trainwright.server.routing import Route

RETURNED_WHEN_DELETED = frozenset(
    {"pods", "services", "serviceaccounts", "persistentvolumeclaims", "resourcequotas"}
)
"""Kinds of the core group whose delete answers with the object even when it is gone at once."""


async def get_object(backing: Backing, request: HttpRequest, route: Route) -> Answer:
    """GET of one object or its status."""
    form = object_form(request)
    await _reach_revision(backing, request)
    stored = backing.registry.get(route.kind, route.namespace, route.name)
    return render_stored(request, route.served, stored, backing.clock.now(), form=form)


async def list_objects(backing: Backing, request: HttpRequest, route: Route) -> Answer:
    """GET of a collection."""
    form = object_form(request)
    options = parse_list_options(request)
    await _reach_revision(backing, request)
    page = backing.registry.list(route.kind, route.namespace, options)
    return await render_page(request, route.served, page, backing.clock.now(), form)


async def _reach_revision(backing: Backing, request: HttpRequest) -> None:
    wanted = request.argument("resourceVersion")
    if wanted not in {"", "0"}:
        await backing.registry.wait_for_revision(wanted)


async def create_object(backing: Backing, request: HttpRequest, route: Route) -> Answer:
    """POST to a collection."""
    form = object_form(request)
    obj, findings = await read_object(request, route)
    options = parse_write_options(request, "CreateOptions", findings)
    written = await backing.registry.create(route.kind, route.namespace, obj, options)
    return _render_written(backing, request, route, written, form=form, code=201)


async def replace_object(backing: Backing, request: HttpRequest, route: Route) -> Answer:
    """PUT of an object or of its status."""
    form = object_form(request)
    obj, findings = await read_object(request, route)
    options = parse_write_options(request, "UpdateOptions", findings)
    written = await backing.registry.replace(
        route.kind, route.namespace, route.name, obj, options, subresource=route.subresource
    )
    return _render_written(
        backing, request, route, written, form=form, code=201 if written.created else 200
    )


async def patch_object(backing: Backing, request: HttpRequest, route: Route) -> Answer:
    """PATCH of an object or of its status, in all four ways."""
    form = object_form(request)
    patch_type = _read_patch_type(request, route)
    _check_apply_options(request, patch_type)
    raw = await request.body()
    decode = decode_json_or_yaml if patch_type is PatchType.APPLY else decode_json
    body = decode(raw)
    options = parse_write_options(request, "PatchOptions", _find_findings(request, raw))
    written = await backing.registry.patch(
        route.kind,
        route.namespace,
        route.name,
        body,
        options,
        type=patch_type,
        subresource=route.subresource,
    )
    return _render_written(
        backing, request, route, written, form=form, code=201 if written.created else 200
    )


def _read_patch_type(request: HttpRequest, route: Route) -> PatchType:
    content_type = request.headers.get("content-type", "")
    if not content_type:
        content_type = "none"
    return PatchType(require_media_type(content_type, route.served.patch_types))


def _check_apply_options(request: HttpRequest, patch_type: PatchType) -> None:
    errors = []
    if patch_type is PatchType.APPLY and not request.argument("fieldManager"):
        detail = "is required for apply patch"
        errors.append(FieldError(Reason.REQUIRED, "fieldManager", detail=detail))
    if patch_type is not PatchType.APPLY and request.argument("force"):
        detail = "may not be specified for non-apply patch"
        errors.append(FieldError(Reason.FORBIDDEN, "force", detail=detail))
    if errors:
        raise refusals.invalid_options("PatchOptions", errors)


async def delete_object(backing: Backing, request: HttpRequest, route: Route) -> Answer:
    """DELETE of one object."""
    form = object_form(request)
    delete, options = await read_delete_options(request)
    written = await backing.registry.delete(
        route.kind, route.namespace, route.name, delete, options
    )
    returned = route.kind.group == "" and route.kind.plural in RETURNED_WHEN_DELETED
    if not written.removed or returned:
        return _render_written(backing, request, route, written, form=form, code=200)
    request.warnings.extend(written.warnings)
    return render_json(build_deleted_status(route.kind, written))


def build_deleted_status(kind: Kind, written: Written) -> Object:
    """The Status of a delete that took effect at once; kubectl waits by its uid."""
    details = {
        "name": written.stored.name,
        "group": kind.group,
        "kind": kind.plural,
        "uid": written.stored.uid,
    }
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }


async def delete_collection(backing: Backing, request: HttpRequest, route: Route) -> Answer:
    """DELETE of a collection, which answers with what it deleted."""
    which = parse_list_options(request)
    delete, options = await read_delete_options(request)
    done = await backing.registry.delete_collection(
        route.kind, route.namespace, which, delete, options
    )
    request.warnings.extend(warning for written in done for warning in written.warnings)
    head = {
        "kind": route.kind.list_kind,
        "apiVersion": route.kind.api_version,
        "metadata": {"resourceVersion": backing.registry.resource_version},
        "items": [msgspec.Raw(written.stored.data) for written in done],
    }
    return Answer(body=msgspec.json.encode(head))


async def read_object(request: HttpRequest, route: Route) -> tuple[Object, Sequence[str]]:
    """The object in a body, and what the decoder saw.

    Raises:
        BadRequest: no object, or one of another kind than the path's.
        UnsupportedMediaType: none of JSON, YAML and protobuf.
    """
    raw = await request.body()
    value = decode_body(request.headers.get("content-type", ""), raw)
    if not isinstance(value, dict):
        raise BadRequest(f"the body of the request is no {route.kind.kind} object")
    _check_kind(value, route)
    return value, _find_findings(request, raw)


def _check_kind(obj: dict[str, Any], route: Route) -> None:
    wanted = {"apiVersion": route.kind.api_version, "kind": route.kind.kind}
    for key, value in wanted.items():
        seen = obj.get(key)
        if not seen and route.served.custom:
            raise BadRequest(f"Object '{key[0].upper()}{key[1:]}' is missing in the request")
        if seen and seen != value and route.served.custom and key == "kind":
            raise refusals.other_kind(route.kind, obj)
        if seen and seen != value:
            raise BadRequest(f'{key}: the body says "{seen}", the path wants "{value}"')
    obj |= wanted


def _find_findings(request: HttpRequest, raw: bytes) -> Sequence[str]:
    if request.argument("fieldValidation") == "Ignore":
        return ()
    return [f'duplicate field "{path}"' for path in find_duplicate_fields(raw)]


def _render_written(
    backing: Backing,
    request: HttpRequest,
    route: Route,
    written: Written,
    *,
    form: Any,
    code: int,
) -> Answer:
    request.warnings.extend(written.warnings)
    return render_stored(
        request, route.served, written.stored, backing.clock.now(), form=form, code=code
    )
