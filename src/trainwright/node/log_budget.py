"""How much room the logs of ended pods may take: the oldest go when there is more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.node.logs import list_log_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a log."""

    path: Path
    size_bytes: int
    written_at: float
    """Seconds since 1970, of its last line."""


def choose_surplus(files: Iterable[LogFile], budget_bytes: int) -> Sequence[LogFile]:
    """The files to remove so that the others fit into the budget, oldest first."""
    kept = sorted(files, key=lambda file: file.written_at)
    total = sum(file.size_bytes for file in kept)
    surplus = []
    for file in kept:
        if total <= budget_bytes:
            break
        surplus.append(file)
        total -= file.size_bytes
    return surplus


def trim_logs(pods_folder: Path, running: frozenset[str], budget_bytes: int) -> int:
    """Remove the oldest logs of ended pods while there are too many; how many files went.

    Args:
        pods_folder: a folder for each pod, by uid.
        running: uids of pods that have not ended: their logs bound themselves.
        budget_bytes: for all others together.
    """
    surplus = choose_surplus(_observe_logs(pods_folder, running), budget_bytes)
    for file in surplus:
        # Told to who reads the log: it does not begin at the beginning any more.
        (file.path.parent / "log.cut").touch(mode=0o600)
        file.path.unlink(missing_ok=True)
    return len(surplus)


def _observe_logs(pods_folder: Path, running: frozenset[str]) -> Iterable[LogFile]:
    for folder in pods_folder.glob("*/containers/*/*"):
        if folder.parts[-4] in running:
            continue
        for path in list_log_files(folder / "log"):
            stat = path.stat()
            yield LogFile(path, stat.st_size, stat.st_mtime)
