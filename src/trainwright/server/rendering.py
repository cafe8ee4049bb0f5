"""Stored objects into answers: plain, as a table, or their metadata alone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from trainwright.server.http import Answer, render_encoded, wants_pretty
from trainwright.server.negotiation import OBJECT_SHAPES, Form, Shape, choose_form
from trainwright.server.tables import build_partial, build_row, build_table, find_columns

if TYPE_CHECKING:
    from datetime import datetime

    from trainwright.server.http import HttpRequest
    from trainwright.server.requests import ServedKind
    from trainwright.server.stored import Stored, StoredPage

ROWS_PER_TURN = 250
"""Objects decoded in a row before the loop gets its turn."""


def object_form(request: HttpRequest) -> Form:
    """The form of an answer that holds objects; NotAcceptable when none fits."""
    return choose_form(request.headers.get("accept", ""), OBJECT_SHAPES)


def render_stored(
    request: HttpRequest,
    served: ServedKind,
    stored: Stored,
    now: datetime,
    *,
    form: Form,
    code: int = 200,
) -> Answer:
    """One object."""
    if form.shape is Shape.PLAIN:
        data = stored.data
    elif form.shape is Shape.TABLE:
        columns = find_columns(served)
        row = build_row(columns, stored.decode(), now, request.argument("includeObject"))
        metadata = {"resourceVersion": stored.resource_version}
        data = msgspec.json.encode(build_table(columns, [row], metadata))
    else:
        data = msgspec.json.encode(build_partial(stored.decode()))
    return render_encoded(data, form.encoding, code, pretty=wants_pretty(request))


async def render_page(
    request: HttpRequest, served: ServedKind, page: StoredPage, now: datetime, form: Form
) -> Answer:
    """A list."""
    metadata: dict[str, Any] = {"resourceVersion": page.resource_version}
    if page.continue_token or (served.custom and form.shape is Shape.PLAIN):
        metadata["continue"] = page.continue_token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    if form.shape is Shape.PLAIN:
        data = splice_list(served, page, metadata)
    elif form.shape is Shape.TABLE:
        data = await _render_table(request, served, page, now, metadata)
    else:
        data = await _render_metadata_list(page, metadata)
    return render_encoded(data, form.encoding, 200, pretty=wants_pretty(request))


def splice_list(served: ServedKind, page: StoredPage, metadata: dict[str, Any]) -> bytes:
    """The list as JSON, from the bytes of its items without decoding any."""
    head = {
        "kind": served.kind.list_kind,
        "apiVersion": served.kind.api_version,
        "metadata": metadata,
    }
    items = b",".join(stored.data for stored in page.items)
    return msgspec.json.encode(head)[:-1] + b',"items":[' + items + b"]}"


async def _render_table(
    request: HttpRequest,
    served: ServedKind,
    page: StoredPage,
    now: datetime,
    metadata: dict[str, Any],
) -> bytes:
    columns = find_columns(served)
    include = request.argument("includeObject")
    rows = []
    for index, stored in enumerate(page.items):
        if index and index % ROWS_PER_TURN == 0:
            await asyncio.sleep(0)
        rows.append(
            msgspec.Raw(msgspec.json.encode(build_row(columns, stored.decode(), now, include)))
        )
    table = build_table(columns, [], metadata)
    table["rows"] = rows
    return msgspec.json.encode(table)


async def _render_metadata_list(page: StoredPage, metadata: dict[str, Any]) -> bytes:
    items = []
    for index, stored in enumerate(page.items):
        if index and index % ROWS_PER_TURN == 0:
            await asyncio.sleep(0)
        items.append(msgspec.Raw(msgspec.json.encode(build_partial(stored.decode()))))
    return msgspec.json.encode(
        {
            "kind": "PartialObjectMetadataList",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "items": items,
        }
    )
