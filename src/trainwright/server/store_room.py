"""Room held back for a store whose disk is full: it must still be able to delete and to report.

Two kinds. The reserve is blocks behind the ends of the database and its log: only those two files
can grow into them, whatever else fills the disk. The ballast is a file that is given up when even
that does not suffice, or when a plane is started on a full disk.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

BALLAST = "ballast"
BALLAST_BYTES = 4 * 1024 * 1024
LOG_BYTES = 8 * 1024 * 1024
"""SQLite moves its log into the database at 4 MB; one big commit may come on top."""
GROWTH_BYTES = 6 * 1024 * 1024
"""What the database may grow by on a full disk: statuses get longer, deletions first get a mark."""

LEAST_FREE_BYTES = 1024 * 1024
"""With less free, new objects are refused: logs and records of running jobs need it more."""

_KEEP_SIZE = 1
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class Reserve:
    """Blocks set aside for a database and its write-ahead log."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._log = database.with_name(database.name + "-wal")
        self._fallocate = _load_fallocate()
        self._descriptors: dict[Path, int] = {}

    def has_room_beside(self) -> bool:
        """Whether the disk has room for more than what is set aside."""
        try:
            return shutil.disk_usage(self._database.parent).free >= LEAST_FREE_BYTES
        except OSError:
            return True

    def is_used(self) -> bool:
        """Whether much of it is gone: the database grew into it, or SQLite cut it off."""
        stat = self._database.stat()
        return stat.st_blocks * 512 - stat.st_size < GROWTH_BYTES // 2

    def renew(self) -> bool:
        """Set aside what is missing; False when the disk has no room for that.

        Where a file system cannot do it there is no reserve, which is no failure.
        """
        if self._fallocate is None:
            return True
        growth = self._database.stat().st_size
        return self._set_aside(self._log, 0, LOG_BYTES) and self._set_aside(
            self._database, growth, GROWTH_BYTES
        )

    def _set_aside(self, path: Path, start: int, length: int) -> bool:
        try:
            descriptor = self._open(path)
        except FileNotFoundError:
            return True
        failed = self._fallocate and self._fallocate(descriptor, _KEEP_SIZE, start, length)
        return not failed or ctypes.get_errno() not in _NO_ROOM

    def _open(self, path: Path) -> int:
        """The descriptor of a file, open for as long as SQLite has it.

        Closing any descriptor of a file drops every lock that this process holds on it (POSIX), and
        with them SQLite's own.
        """
        found = self._descriptors.get(path)
        if found is None:
            found = self._descriptors[path] = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        return found

    def close(self) -> None:
        """Let go of the files; only once SQLite has."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()


def _load_fallocate() -> ctypes._NamedFuncPointer | None:
    """`fallocate` of Linux, which can set blocks aside without making the file longer."""
    try:
        function = ctypes.CDLL(None, use_errno=True).fallocate
    except (AttributeError, OSError):
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return function


class Ballast:
    """A few megabytes that are given back to a full disk."""

    def __init__(self, folder: Path, size_bytes: int = BALLAST_BYTES) -> None:
        self._folder = folder
        self._path = folder / BALLAST
        self._size_bytes = size_bytes
        self.held = self._path.exists()
        self.restore()

    def release(self) -> bool:
        """Give the space back to the disk; False when that has happened before."""
        held, self.held = self.held, False
        self._path.unlink(missing_ok=True)
        return held

    def has_room(self, reusable_bytes: int) -> bool:
        """Whether a disk that was full has room for new objects again.

        Args:
            reusable_bytes: free pages inside the database, which deleted objects left.
        """
        if self.restore():
            return True
        try:
            free = shutil.disk_usage(self._folder).free
            return free + reusable_bytes >= 2 * self._size_bytes
        except OSError:
            return False

    def restore(self) -> bool:
        """Take the space (again) if there is plenty; returns whether it is held."""
        if self.held:
            return True
        try:
            if shutil.disk_usage(self._folder).free < 4 * self._size_bytes:
                return False
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, self._size_bytes)
            finally:
                os.close(descriptor)
        except OSError:
            self._path.unlink(missing_ok=True)
            return False
        self.held = True
        return True
