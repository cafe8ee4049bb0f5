"""List and watch over HTTP: keeps a sink as true as the server is, for one kind in one namespace.

A broken watch goes on from the last resourceVersion or bookmark; only when the server has forgotten
that (410) everything is listed again, one kind at a time, after a random moment.
"""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

from trainwright.base.errors import ApiError, BadRequest, Gone, Invalid, NotFound, Unreachable
from trainwright.base.errors import Timeout as ServerTimeout
from trainwright.machinery.api import WatchType
from trainwright.machinery.cache import CachedObject, Fields, build_cached, parse_revision

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from trainwright.api.kinds import Kind
    from trainwright.machinery.api import RawReads
    from trainwright.machinery.cache import Name, Projection

logger = logging.getLogger(__name__)

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
OFF_LOOP_BYTES = 2 * 1024 * 1024
"""Pages above this are decoded in a thread."""
SHORT_WATCH_S = 1.0
"""A watch that ended sooner is taken for trouble of the server."""
ITEMS_PER_TURN = 100
"""Objects that are taken in before other work gets a turn."""
_PARTIAL = "application/json;as={};g=meta.k8s.io;v=v1, application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorSettings:
    """How lists and watches are done. Times in seconds."""

    page: int = 500
    """Objects in a page of a list."""
    watch_list: bool = True
    """Ask for the initial objects in the watch itself, where the server can do that."""
    watch_s: tuple[float, float] = (300.0, 600.0)
    """The server ends each watch after a time between these, so that reconnects are spread."""
    silence_s: float = 150.0
    """No byte for this long means a half-open connection: bookmarks come about every 60 s."""
    list_silence_s: float = 60.0
    """The same while a list comes."""
    relist_jitter_s: float = 5.0
    """Waited at most before a list that is not the first."""
    retry_base_s: float = 0.2
    retry_cap_s: float = 30.0
    """Bounds of the back-off after failures."""


class Turns:
    """What the reflectors of a process share: one lists at a time."""

    def __init__(self, settings: ReflectorSettings) -> None:
        self.lock = asyncio.Lock()
        self.watch_list = settings.watch_list
        """False once the server refused it."""


class Sink(Protocol):
    """Where a reflector brings what it sees."""

    def observe(self, obj: CachedObject, *, initial: bool) -> None:
        """A state of an object; `initial`: there when we came, so that nothing has changed."""
        ...

    def observe_removal(self, obj: CachedObject) -> None:
        """The object is gone; `obj` is its last state with the removal's revision."""
        ...

    def observe_listed(self, namespace: str, names: set[Name], revision: int) -> None:
        """At `revision` there was nothing but `names`."""
        ...

    def forget_order(self, namespace: str) -> None:
        """Revisions have started anew."""
        ...


class _ListMeta(msgspec.Struct):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    token: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[Fields] | None = None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _BookmarkMeta(msgspec.Struct):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct):
    metadata: _BookmarkMeta


_read_page = msgspec.json.Decoder(_Page).decode
_read_event = msgspec.json.Decoder(_Event).decode
_read_fields = msgspec.json.Decoder(Fields).decode
_read_bookmark = msgspec.json.Decoder(_Bookmark).decode


class Reflector:
    """Runs for ever; `synced` is set after the first whole list."""

    def __init__(
        self,
        api: RawReads,
        kind: Kind,
        namespace: str,
        sink: Sink,
        *,
        projection: Projection,
        turns: Turns,
        settings: ReflectorSettings,
    ) -> None:
        self._api = api
        self._kind = kind
        self.namespace = namespace
        """"" stands for all."""
        self._sink = sink
        self._projection = projection
        self._turns = turns
        self._settings = settings
        self._version = ""
        self._heard = False
        self.synced = asyncio.Event()

    @property
    def revision(self) -> int:
        """Everything up to this revision has been seen; 0 before the first list."""
        return parse_revision(self._version)

    async def run(self) -> None:
        """List, then watch; every failure is retried with back-off."""
        failures = 0
        while True:
            self._heard = False
            started = asyncio.get_running_loop().time()
            failed = False
            try:
                await self._reflect()
            except (ApiError, Unreachable) as error:
                failed = True
                logger.info("watch of %s: %s", self._kind.resource, error)
                self._note_failure(error)
            lasted_s = asyncio.get_running_loop().time() - started
            if self._heard or lasted_s >= self._settings.retry_cap_s:
                # What is cut at once, again and again, must not become a busy loop.
                failures = int(failed or lasted_s < SHORT_WATCH_S)
            else:
                failures += 1
            await asyncio.sleep(self._find_delay_s(failures))

    async def _reflect(self) -> None:
        """Go on from where we are; returns when the server ends the watch."""
        if self._version:
            async with aclosing(self._events()) as events:
                await self._follow(events)
        elif self._turns.watch_list:
            await self._list_by_watch()
        else:
            await self._list_by_pages()

    def _note_failure(self, error: Exception) -> None:
        if isinstance(error, ServerTimeout):
            # "Too large resource version": the server was set back, as by a restored backup.
            self._sink.forget_order(self.namespace)
        if isinstance(error, Gone | NotFound | ServerTimeout):
            self._version = ""

    def _find_delay_s(self, failures: int) -> float:
        if not failures:
            return 0.0
        settings = self._settings
        longest_s: float = min(
            settings.retry_base_s * 2.0 ** min(failures - 1, 20), settings.retry_cap_s
        )
        return random.uniform(0.5, 1.0) * longest_s  # noqa: S311 - spreads load

    async def _wait_for_turn(self, turn: AsyncExitStack) -> None:
        if self.synced.is_set():
            await asyncio.sleep(random.uniform(0.0, self._settings.relist_jitter_s))  # noqa: S311 - spreads load
        await turn.enter_async_context(self._turns.lock)

    async def _list_by_watch(self) -> None:
        """WatchList: the objects come as events, a bookmark ends them, and the watch goes on."""
        async with aclosing(self._events(initial=True)) as events:
            async with AsyncExitStack() as turn:
                await self._wait_for_turn(turn)
                try:
                    is_whole = await self._take_initial(events)
                except (BadRequest, Invalid, TimeoutError) as error:
                    logger.info("%s is listed by pages: %s", self._kind.resource, error)
                    self._turns.watch_list = False
                    return
            if is_whole:
                await self._follow(events)

    async def _take_initial(self, events: AsyncIterator[_Event]) -> bool:
        """The events up to the bookmark that ends them; False when the stream ended before.

        Raises:
            TimeoutError: the bookmark does not come: an old server took it for a plain watch.
        """
        names: set[Name] = set()
        now = asyncio.get_running_loop().time
        async with asyncio.timeout(self._settings.list_silence_s) as limit:
            async for event in events:
                limit.reschedule(now() + self._settings.list_silence_s)
                if event.type == WatchType.BOOKMARK:
                    metadata = _read_bookmark(event.object).metadata
                    if INITIAL_EVENTS_END in (metadata.annotations or ()):
                        self._finish_list(names, metadata.resource_version)
                        return True
                    continue
                obj = self._build(_read_fields(event.object))
                if event.type == WatchType.DELETED:
                    names.discard(obj.key)
                    self._sink.observe_removal(obj)
                else:
                    names.add(obj.key)
                    self._sink.observe(obj, initial=not self.synced.is_set())
                if len(names) % ITEMS_PER_TURN == 0:
                    await asyncio.sleep(0)
        return False

    async def _list_by_pages(self) -> None:
        names: set[Name] = set()
        version = token = ""
        async with AsyncExitStack() as turn:
            await self._wait_for_turn(turn)
            while True:
                metadata, objects = await self._read_page(token)
                for number, obj in enumerate(objects, start=1):
                    names.add(obj.key)
                    self._sink.observe(obj, initial=not self.synced.is_set())
                    if number % ITEMS_PER_TURN == 0:
                        await asyncio.sleep(0)
                # Changes while we list are told by the watch: it starts where the list started.
                version = version or metadata.resource_version
                token = metadata.token
                if not token:
                    break
            self._finish_list(names, version)

    def _finish_list(self, names: set[Name], version: str) -> None:
        self._sink.observe_listed(self.namespace, names, parse_revision(version))
        self._version = version
        self._heard = True
        self.synced.set()

    async def _read_page(self, token: str) -> tuple[_ListMeta, Sequence[CachedObject]]:
        chunks = self._api.stream(
            self._kind.path(self.namespace),
            query={"limit": str(self._settings.page), "continue": token},
            silence_s=self._settings.list_silence_s,
            accept=self._accept("PartialObjectMetadataList"),
        )
        data = b"".join([chunk async for chunk in chunks])
        if len(data) > OFF_LOOP_BYTES:
            return await asyncio.to_thread(self._decode_page, data)
        return self._decode_page(data)

    def _decode_page(self, data: bytes) -> tuple[_ListMeta, Sequence[CachedObject]]:
        page = _read_page(data)
        return page.metadata, [self._build(item) for item in page.items or ()]

    def _build(self, fields: Fields) -> CachedObject:
        return build_cached(self._kind, fields, self._projection)

    async def _follow(self, events: AsyncIterator[_Event]) -> None:
        number = 0
        async for event in events:
            self._take(event)
            number += 1
            if number % ITEMS_PER_TURN == 0:
                await asyncio.sleep(0)

    def _take(self, event: _Event) -> None:
        if event.type == WatchType.BOOKMARK:
            self._version = _read_bookmark(event.object).metadata.resource_version or self._version
            return
        obj = self._build(_read_fields(event.object))
        if event.type == WatchType.DELETED:
            self._sink.observe_removal(obj)
        else:
            self._sink.observe(obj, initial=False)
        if obj.revision:
            self._version = str(obj.revision)

    async def _events(self, *, initial: bool = False) -> AsyncGenerator[_Event, None]:
        watch_s = random.uniform(*self._settings.watch_s)  # noqa: S311 - spreads reconnects
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(max(1, round(watch_s))),
            "resourceVersion": self._version,
        }
        if initial:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        lines = self._api.stream_lines(
            self._kind.path(self.namespace),
            query=query,
            silence_s=self._settings.silence_s,
            accept=self._accept("PartialObjectMetadata"),
        )
        async for line in lines:
            try:
                event = _read_event(line)
            except msgspec.DecodeError as error:
                raise Unreachable(f"a watch was cut in the middle of an event: {error}") from error
            if event.type == "ERROR":
                raise ApiError.from_status(msgspec.json.decode(event.object))
            self._heard = True
            yield event

    def _accept(self, partial: str) -> str:
        return _PARTIAL.format(partial) if self._projection.metadata_only else "application/json"
