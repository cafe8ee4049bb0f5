"""Reading the logs that shims write: rows `TIME STREAM F|P TEXT`, rotated as log, log.1, and so on."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Protocol

from trainwright.base.objects import Object, ObjectView, dig, name_of, uid_of
from trainwright.base.times import parse_time
from trainwright.node.instance import Instance, list_instances

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from datetime import datetime
    from pathlib import Path

POLL_S = 0.1
"""How often a followed log is looked at."""
CHUNK_BYTES = 65536


class LogQuery(Protocol):
    """What part of which log is asked for (the server's `LogOptions`)."""

    @property
    def container(self) -> str:
        """Whose log."""
        ...

    @property
    def follow(self) -> bool:
        """Go on until this run of the container ends."""
        ...

    @property
    def previous(self) -> bool:
        """The run before."""
        ...

    @property
    def timestamps(self) -> bool:
        """Put the time before each line."""
        ...

    @property
    def tail_lines(self) -> int | None:
        """Only the last lines."""
        ...

    @property
    def since(self) -> datetime | None:
        """Only lines from then on."""
        ...


@dataclass(frozen=True, slots=True)
class Piece:
    """One row of a log file: a line, or a piece of a line that goes on in the next row."""

    time: str
    text: bytes
    is_end: bool


def parse_row(row: bytes) -> Piece | None:
    """A row without its newline; None when it was damaged (a full disk)."""
    parts = row.split(b" ", 3)
    if len(parts) != 4 or parts[2] not in (b"F", b"P"):
        return None
    return Piece(parts[0].decode(errors="replace"), parts[3], parts[2] == b"F")


class _Renderer:
    """Turns rows into the text that is asked for; knows where lines begin."""

    def __init__(self, *, timestamps: bool, since: datetime | None) -> None:
        self._timestamps = timestamps
        self._since = since
        self._starts = True

    def render(self, row: bytes) -> bytes:
        """The text of one row, empty when it is not asked for."""
        piece = parse_row(row)
        if piece is None or not self._is_wanted(piece):
            return b""
        head = f"{piece.time} ".encode() if self._timestamps and self._starts else b""
        self._starts = piece.is_end
        return head + piece.text + (b"\n" if piece.is_end else b"")

    def _is_wanted(self, piece: Piece) -> bool:
        return self._since is None or _parse_nano_time(piece.time) >= self._since


def _parse_nano_time(text: str) -> datetime:
    # datetime keeps microseconds: cut the nanoseconds off.
    return parse_time(text[:26] + "Z")


def list_log_files(log: Path) -> list[Path]:
    """The files of one log that are there, oldest first."""
    older = sorted(
        (path for path in log.parent.glob(log.name + ".*") if path.suffix[1:].isdigit()),
        key=lambda path: -int(path.suffix[1:]),
    )
    return [*older, *([log] if log.exists() else [])]


class LogReader:
    """Rows of one log in order, across rotation; `read` again gives what came meanwhile."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._file: IO[bytes] | None = None
        self._rest = b""

    def read(self) -> Iterator[bytes]:
        """Complete rows up to the present end."""
        while True:
            if self._file is None and not self._open_next():
                return
            while self._file is not None and (data := self._file.read(CHUNK_BYTES)):
                *rows, self._rest = (self._rest + data).split(b"\n")
                yield from rows
            if not self._open_next():
                return

    def _open_next(self) -> bool:
        """Go on to the file after the one that is open; False when that is the newest."""
        files = list_log_files(self._log)
        if self._file is None:
            following = files[:1]
        else:
            own = os.fstat(self._file.fileno())
            numbers = [path.stat().st_ino for path in files if path.exists()]
            if own.st_ino in numbers:
                following = files[numbers.index(own.st_ino) + 1 :][:1]
            else:
                # Rotated away under a slow reader: what is left starts at the oldest.
                following = files[:1]
            if following:
                # A writer may have added to the old file between our last read and its rotation.
                data = self._file.read()
                if data:
                    self._file.seek(-len(data), os.SEEK_CUR)
                    return True
        if not following:
            return False
        try:
            file = following[0].open("rb")
        except FileNotFoundError:
            return False
        self.close()
        self._file = file
        self._rest = b""
        return True

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def select_tail(rows: Iterator[bytes], lines: int) -> list[bytes]:
    """The rows of the last `lines` lines; a piece of a line without end counts as a line."""
    kept: deque[list[bytes]] = deque(maxlen=lines)
    current: list[bytes] = []
    for row in rows:
        current.append(row)
        piece = parse_row(row)
        if piece is None or piece.is_end:
            kept.append(current)
            current = []
    if current:
        kept.append(current)
    return [row for line in kept for row in line]


def read_tail(log: Path, lines: int, limit_bytes: int) -> str:
    """The last lines of a log as text, at most the last `limit_bytes` of them."""
    reader, renderer = LogReader(log), _Renderer(timestamps=False, since=None)
    try:
        rows = select_tail(reader.read(), lines)
    finally:
        reader.close()
    text = b"".join(renderer.render(row) for row in rows)
    return text[-limit_bytes:].decode(errors="replace")


async def stream_log(
    log: Path, query: LogQuery, is_over: LogEnd, *, poll_s: float = POLL_S
) -> AsyncIterator[bytes]:
    """Chunks of one log; with `follow` until `is_over()` and everything is read."""
    reader = LogReader(log)
    renderer = _Renderer(timestamps=query.timestamps, since=query.since)
    try:
        rows: Iterator[bytes] = reader.read()
        if query.tail_lines is not None:
            rows = iter(select_tail(rows, query.tail_lines))
        while True:
            # Asked before reading: what is written between the two is read next time.
            was_over = not query.follow or is_over()
            for chunk in _join(rows, renderer):
                yield chunk
                await asyncio.sleep(0)
            if was_over:
                return
            await asyncio.sleep(poll_s)
            rows = reader.read()
    finally:
        reader.close()


class LogEnd(Protocol):
    """Whether a log gets no more rows."""

    def __call__(self) -> bool:
        """True once the run has ended."""
        ...


def _join(rows: Iterator[bytes], renderer: _Renderer) -> Iterator[bytes]:
    parts: list[bytes] = []
    size = 0
    for row in rows:
        text = renderer.render(row)
        if text:
            parts.append(text)
            size += len(text)
        if size >= CHUNK_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)


class PodLogs:
    """Logs of this node's pods: the server's log provider."""

    def __init__(self, pods_folder: Path) -> None:
        self._pods_folder = pods_folder

    async def read_log(self, pod: Object, options: LogQuery) -> AsyncIterator[bytes]:
        """Chunks of a container's log; nothing when there is none yet."""
        instance = self._find_instance(pod, options)
        if instance is None:
            return
        stream = stream_log(
            instance.folder / "log",
            options,
            lambda: instance.read_exit() is not None or not instance.is_alive(),
        )
        async for chunk in stream:
            yield chunk

    def find_gap(self, pod: Object, options: LogQuery) -> str:
        """One sentence when the log's first lines are asked for and gone; else nothing."""
        instance = self._find_instance(pod, options)
        if instance is None or options.tail_lines is not None or options.since is not None:
            return ""
        if not (instance.folder / "log.cut").exists():
            return ""
        return (
            f"the first lines of container {options.container} of pod {name_of(pod)} are gone: "
            "it wrote more than is kept"
        )

    def _find_instance(self, pod: ObjectView, options: LogQuery) -> Instance | None:
        folder = self._pods_folder / uid_of(pod) / "containers" / options.container
        instances = list_instances(folder)
        if options.previous and not _waits(pod, options.container):
            instances = instances[:-1]
        return instances[-1] if instances else None


def _waits(pod: ObjectView, container: str) -> bool:
    """Whether a container waits for its restart, so that its last run is the previous one."""
    rows = [
        *dig(pod, "status", "containerStatuses", default=[]),
        *dig(pod, "status", "initContainerStatuses", default=[]),
    ]
    return any(row["name"] == container and dig(row, "state", "waiting") for row in rows)
