"""Objects on SQLite and in memory: one writer thread, group commit, changes told in commit order.

Reads are served from memory by the event loop. A write is handed to the writer thread, which takes
everything that waits, gives out resourceVersions, commits once and hands the outcome back; only
then is memory changed, are listeners told, and is the caller answered, in exactly that order.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.base.errors import ApiError, InternalError, ServiceUnavailable
from trainwright.machinery.api import WatchType
from trainwright.server.object_index import ObjectIndex
from trainwright.server.store_file import (
    DATABASE,
    FolderLock,
    count_reusable_bytes,
    load_revision,
    load_rows,
    open_database,
    prepare_folder,
    write_rows,
)
from trainwright.server.store_room import Ballast, Reserve
from trainwright.server.stored import Stored, build_stored, read_stored, render_as_version

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from trainwright.api.kinds import Kind
    from trainwright.base.objects import Object

MAX_GROUP = 256
"""Changes committed at once; more would make the first of them wait for the last."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One write that waits for its commit. The writer sets the object's resourceVersion."""

    kind: Kind
    obj: Object
    before: Stored | None
    remove: bool = False
    durable: bool = True
    """Sync to the disk before it is answered; status writes do without."""


@dataclass(frozen=True, slots=True)
class Committed:
    """One change that happened."""

    type: WatchType
    before: Stored | None
    now: Stored
    """After a removal: the last state with the removal's resourceVersion."""


_Pending = tuple[Change, "asyncio.Future[Committed]"]


class Store:
    """The objects of one data folder. Opened and used on one event loop."""

    def __init__(
        self, folder: Path, connection: sqlite3.Connection, lock: FolderLock, ballast: Ballast
    ) -> None:
        self._folder = folder
        self._connection = connection
        self._lock = lock
        self._ballast = ballast
        self._reserve = Reserve(folder / DATABASE)
        self._loop = asyncio.get_running_loop()
        self._objects: dict[str, ObjectIndex] = {}
        self._listeners: list[Callable[[Committed], None]] = []
        self._waiting: queue.SimpleQueue[_Pending | None] = queue.SimpleQueue()
        self._closing = False
        self._full = not self._reserve.renew()
        self._thread = threading.Thread(target=self._write, name="store-writer", daemon=True)
        self.revision = load_revision(connection)
        """The newest committed revision that listeners have been told of."""
        self._next_revision = self.revision + 1

    @classmethod
    async def open(cls, folder: Path) -> Store:
        """Open the store; rows are read by `load`.

        Raises:
            LocalRunError: the folder is held by another process, or not usable.
        """
        return cls(folder, *await asyncio.to_thread(_open_files, folder))

    def load(self, resolve: Callable[[str, bytes], Kind]) -> None:
        """Read every object into memory and start the writer.

        Args:
            resolve: the kind of a stored object, by its resource and JSON.
        """
        for resource, data, revision in load_rows(self._connection):
            kind = resolve(resource, data)
            self.index(resource).put(read_stored(kind, render_as_version(kind, data), revision))
        self._thread.start()

    async def close(self) -> None:
        """Commit what waits, then let go of the folder."""
        if self._closing:
            return
        self._closing = True
        self._waiting.put(None)
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)
            await asyncio.sleep(0)
        self._connection.close()
        self._reserve.close()
        self._lock.release()

    def index(self, resource: str) -> ObjectIndex:
        """The objects of one resource, such as `pods` or `jobs.batch`."""
        found = self._objects.get(resource)
        if found is None:
            found = self._objects[resource] = ObjectIndex()
        return found

    def resources(self) -> Sequence[str]:
        """Every resource that has objects."""
        return [resource for resource, index in self._objects.items() if len(index)]

    def listen(self, listener: Callable[[Committed], None]) -> None:
        """Call `listener` for each change, in commit order, before its writer is answered."""
        self._listeners.append(listener)

    def submit(self, change: Change) -> asyncio.Future[Committed]:
        """Queue a change. The caller sees to it that the same object has no other change waiting.

        The future raises ServiceUnavailable or InternalError when nothing was changed.
        """
        future: asyncio.Future[Committed] = self._loop.create_future()
        if self._closing:
            future.set_exception(ServiceUnavailable("the server is stopping; nothing was changed"))
        else:
            self._waiting.put((change, future))
        return future

    def _write(self) -> None:
        """The writer thread: commit groups until told to stop."""
        last = False
        while not last:
            group, last = self._take_group()
            try:
                self._commit_or_fail(group)
            except Exception as error:
                log.exception("writer failed changes=%d", len(group))
                self._fail(group, InternalError(f"the store failed: {error!r}"))

    def _take_group(self) -> tuple[list[_Pending], bool]:
        """Everything that waits, in order; True when nothing more will come."""
        group: list[_Pending] = []
        pending = self._waiting.get()
        while pending is not None:
            group.append(pending)
            if len(group) == MAX_GROUP:
                return group, False
            try:
                pending = self._waiting.get_nowait()
            except queue.Empty:
                return group, False
        return group, True

    def _commit_or_fail(self, group: list[_Pending]) -> None:
        if any(change.before is None for change, _ in group):
            self._notice_full_disk()
        try:
            self._commit(self._refuse_new(group) if self._full else group)
        except sqlite3.Error as error:
            if not _is_full(error):
                self._fail(group, self._refusal(error))
                return
            self._full = True
            if self._ballast.release():
                log.warning("disk is full, ballast given back folder=%s", self._folder)
            group = self._refuse_new(group, sure=True)
            try:
                self._commit(group)
            except sqlite3.Error as again:
                self._fail(group, self._refusal(again))

    def _notice_full_disk(self) -> None:
        if not self._full and not self._reserve.has_room_beside():
            log.warning("disk is full, new objects are refused folder=%s", self._folder)
            self._full = True

    def _keep_room(self) -> None:
        """Set aside again what was used, so that there is room for deletions on a full disk."""
        if self._reserve.is_used():
            self._reserve.renew()

    def _refuse_new(self, group: list[_Pending], *, sure: bool = False) -> list[_Pending]:
        """While the disk is full, new objects are refused so that deletions keep their room."""
        if not sure and self._has_room():
            self._full = False
            return group
        new = [pending for pending in group if pending[0].before is None]
        self._fail(new, self._refusal(None))
        return [pending for pending in group if pending[0].before is not None]

    def _has_room(self) -> bool:
        if not self._reserve.has_room_beside() or not self._reserve.renew():
            return False
        return self._ballast.has_room(count_reusable_bytes(self._connection))

    def _commit(self, group: list[_Pending]) -> None:
        if not group:
            return
        revision, rows, outcome = self._next_revision, [], []
        for change, _ in group:
            stored = build_stored(change.kind, change.obj, revision)
            data = None if change.remove else stored.data
            rows.append((change.kind.resource, stored.namespace, stored.name, revision, data))
            outcome.append(Committed(_type_of(change), change.before, stored))
            revision += 1
        durable = any(change.durable for change, _ in group)
        write_rows(self._connection, rows, revision - 1, durable=durable)
        self._next_revision = revision
        futures = [future for _, future in group]
        self._loop.call_soon_threadsafe(self._publish, outcome, futures)
        self._keep_room()

    def _fail(self, group: list[_Pending], error: ApiError) -> None:
        if group:
            log.error("commit failed changes=%d cause=%s", len(group), error)
            self._loop.call_soon_threadsafe(_refuse, [future for _, future in group], error)

    def _refusal(self, error: sqlite3.Error | None) -> ApiError:
        if error is None or _is_full(error):
            return InternalError(
                f"the disk of {self._folder} is full; nothing was changed. Free some space, or "
                "delete objects that are not needed any more",
                code=507,
            )
        return InternalError(f"the store in {self._folder} failed: {error}; nothing was changed")

    def _publish(self, outcome: list[Committed], futures: list[asyncio.Future[Committed]]) -> None:
        for committed, future in zip(outcome, futures, strict=True):
            now = committed.now
            index = self.index(now.kind.resource)
            if committed.type is WatchType.DELETED:
                index.remove((now.namespace, now.name))
            else:
                index.put(now)
            self.revision = now.revision
            for listener in self._listeners:
                try:
                    listener(committed)
                except Exception:
                    # The change has happened: its writer must be answered whatever listeners do.
                    log.exception("listener failed revision=%d", now.revision)
            if not future.done():
                future.set_result(committed)


def _type_of(change: Change) -> WatchType:
    if change.remove:
        return WatchType.DELETED
    return WatchType.ADDED if change.before is None else WatchType.MODIFIED


def _is_full(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith("SQLITE_FULL") or "full" in str(error)


def _refuse(futures: list[asyncio.Future[Committed]], error: ApiError) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)


def _open_files(folder: Path) -> tuple[sqlite3.Connection, FolderLock, Ballast]:
    prepare_folder(folder)
    lock = FolderLock(folder)
    try:
        connection = open_database(folder)
    except BaseException:
        lock.release()
        raise
    return connection, lock, Ballast(folder)
