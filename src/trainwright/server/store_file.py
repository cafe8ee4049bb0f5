"""The store's place on disk: folder, lock, database file, schema version.

Everything here blocks; the writer thread and opening call it, never the event loop's requests.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from trainwright.api import kinds
from trainwright.base.errors import LocalRunError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DATABASE = "objects.db"

UPGRADES = (
    """
    CREATE TABLE objects (
        resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
        revision INTEGER NOT NULL, data BLOB NOT NULL,
        PRIMARY KEY (resource, namespace, name));
    CREATE TABLE revision (id INTEGER PRIMARY KEY CHECK (id = 1), value INTEGER NOT NULL);
    INSERT INTO revision VALUES (1, 1);
    """,
)
"""Step i leads from schema version i to i + 1. Steps are only ever added."""

_NETWORK_FILE_SYSTEMS = ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "lustre", "ceph")

log = logging.getLogger(__name__)


class FolderLock:
    """Holds a data folder for this process; released by the kernel when the process dies."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise LocalRunError(f"{folder}: cannot lock the data folder: {error}") from error
            raise LocalRunError(
                f"{folder}: the data folder is in use by process {holder or 'unknown'}; "
                "stop that one first, or choose another folder"
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let others have the folder."""
        os.close(self._descriptor)


def prepare_folder(folder: Path) -> None:
    """Make the folder, readable by its owner only.

    Raises:
        LocalRunError: when it cannot be made or is not ours.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
    except OSError as error:
        raise LocalRunError(f"{folder}: cannot use it as the data folder: {error}") from error
    file_system = _file_system_of(folder)
    if file_system in _NETWORK_FILE_SYSTEMS:
        log.warning(
            "data folder is on a network file system folder=%s type=%s", folder, file_system
        )


def _file_system_of(folder: Path) -> str:
    best, kind = "", ""
    try:
        lines = Path("/proc/mounts").read_text().splitlines()
    except OSError:
        return ""
    target = str(folder.resolve())
    for line in lines:
        _, mount, file_system, *_ = line.split(" ")
        inside = target == mount or target.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, file_system
    return kind


def open_database(folder: Path) -> sqlite3.Connection:
    """Open and upgrade the database; the connection belongs to one thread at a time.

    Raises:
        LocalRunError: a newer version wrote it, or it is no database of ours.
    """
    path = folder / DATABASE
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    path.chmod(0o600)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5)
    try:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA secure_delete=ON")
        connection.execute("PRAGMA journal_size_limit=16777216")
        _upgrade(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise LocalRunError(f"{path}: cannot open the store: {error}") from error
    except LocalRunError:
        connection.close()
        raise
    return connection


def _upgrade(connection: sqlite3.Connection, path: Path) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(UPGRADES):
        raise LocalRunError(
            f"{path}: written by a newer trainwright (store version {version}, this one knows "
            f"{len(UPGRADES)}); install that version, or choose another data folder"
        )
    for number, script in enumerate(UPGRADES[version:], start=version + 1):
        connection.executescript(f"BEGIN IMMEDIATE;{script};PRAGMA user_version={number};COMMIT;")


def load_rows(connection: sqlite3.Connection) -> Iterator[tuple[str, bytes, int]]:
    """Every object as (resource, data, revision); CRDs first, since they say what others are."""
    yield from connection.execute(
        "SELECT resource, data, revision FROM objects ORDER BY resource<>?, resource",
        (kinds.CUSTOM_RESOURCE_DEFINITION.resource,),
    )


def load_revision(connection: sqlite3.Connection) -> int:
    """The last revision that was given out."""
    (revision,) = connection.execute("SELECT value FROM revision").fetchone()
    return int(revision)


Row = tuple[str, str, str, int, bytes | None]
"""(resource, namespace, name, revision, data); no data means removal."""


def write_rows(
    connection: sqlite3.Connection, rows: Iterable[Row], revision: int, *, durable: bool
) -> None:
    """Commit the rows and the new revision, all or nothing.

    Args:
        connection: the one of `open_database`.
        rows: in the order in which they happened.
        revision: the newest revision among them.
        durable: sync to the disk before returning; otherwise the next durable commit does.
    """
    connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
    connection.execute("BEGIN IMMEDIATE")
    try:
        for resource, namespace, name, number, data in rows:
            if data is None:
                connection.execute(
                    "DELETE FROM objects WHERE resource=? AND namespace=? AND name=?",
                    (resource, namespace, name),
                )
            else:
                connection.execute(
                    "INSERT INTO objects VALUES (?,?,?,?,?) ON CONFLICT DO UPDATE"
                    " SET revision=excluded.revision, data=excluded.data",
                    (resource, namespace, name, number, data),
                )
        connection.execute("UPDATE revision SET value=?", (revision,))
        connection.execute("COMMIT")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def count_reusable_bytes(connection: sqlite3.Connection) -> int:
    """The size of the free pages inside the database."""
    (pages,) = connection.execute("PRAGMA freelist_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    return int(pages) * int(size)
