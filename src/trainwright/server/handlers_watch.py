"""Handler of watch: JSON lines, everything that is ready in one send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from trainwright.base.errors import Gone
from trainwright.machinery.api import WatchType
from trainwright.server.http import Stream
from trainwright.server.negotiation import Shape, choose_form
from trainwright.server.options import parse_watch_options
from trainwright.server.tables import build_partial, build_row, build_table, find_columns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from trainwright.server.backing import Backing
    from trainwright.server.http import HttpRequest
    from trainwright.server.registry import Watch
    from trainwright.server.requests import RawEvent
    from trainwright.server.routing import Route

    Render = Callable[[RawEvent], bytes]

_HEADS = {t: b'{"type":"' + t.value.encode() + b'","object":' for t in WatchType}
WATCH_SHAPES = (Shape.PLAIN, Shape.TABLE, Shape.METADATA, Shape.METADATA_LIST)


async def watch_objects(backing: Backing, request: HttpRequest, route: Route) -> Stream:
    """GET with `watch=true` of a collection, or of one object by its name."""
    form = choose_form(_json_only(request.headers.get("accept", "")), WATCH_SHAPES)
    options = parse_watch_options(request, name=route.name)
    if options.resource_version not in {"", "0"}:
        await backing.registry.wait_for_revision(options.resource_version)
    try:
        watch = backing.registry.watch(route.kind, route.namespace, options)
    except Gone as error:
        return Stream(chunks=_one_error(error))
    render = _find_render(backing, request, route, form.shape)
    return Stream(chunks=_frame(watch, render), close=watch.close)


def _json_only(accept: str) -> str:
    """Watches are framed as JSON lines only, so YAML is no alternative here."""
    kept = [part for part in accept.split(",") if "yaml" not in part.lower()]
    return ",".join(kept) if kept or not accept else accept


async def _frame(watch: Watch, render: Render) -> AsyncIterator[bytes]:
    async for batch in watch.batches():
        yield b"".join([_HEADS[event.type] + render(event) + b"}\n" for event in batch])


async def _one_error(error: Gone) -> AsyncIterator[bytes]:
    yield msgspec.json.encode({"type": "ERROR", "object": error.to_status()}) + b"\n"


def _find_render(backing: Backing, request: HttpRequest, route: Route, shape: Shape) -> Render:
    if shape is Shape.PLAIN:
        return lambda event: event.data
    if shape is Shape.TABLE:
        return _TableRender(backing, request, route)
    return lambda event: msgspec.json.encode(build_partial(msgspec.json.decode(event.data)))


class _TableRender:
    """Renders each event as a Table; only the first carries the columns."""

    def __init__(self, backing: Backing, request: HttpRequest, route: Route) -> None:
        self._clock = backing.clock
        self._columns = find_columns(route.served)
        self._include = request.argument("includeObject")
        self._is_first = True

    def __call__(self, event: RawEvent) -> bytes:
        obj: dict[str, Any] = msgspec.json.decode(event.data)
        rows = []
        metadata = obj.get("metadata") or {}
        if event.type is not WatchType.BOOKMARK:
            rows = [build_row(self._columns, obj, self._clock.now(), self._include)]
            metadata = {"resourceVersion": metadata.get("resourceVersion", "")}
        table = build_table(self._columns, rows, metadata, with_definitions=self._is_first)
        self._is_first = False
        return msgspec.json.encode(table)
