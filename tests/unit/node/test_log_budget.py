"""Which logs go when ended pods have left too many."""

from __future__ import annotations

import os
from pathlib import Path

from trainwright.node.log_budget import LogFile, choose_surplus, trim_logs


def file(name: str, size: int, written_at: float) -> LogFile:
    return LogFile(Path(name), size, written_at)


def test_the_oldest_go_until_the_others_fit() -> None:
    files = [file("new", 40, 3.0), file("old", 30, 1.0), file("middle", 50, 2.0)]
    assert [f.path.name for f in choose_surplus(files, 120)] == []
    assert [f.path.name for f in choose_surplus(files, 119)] == ["old"]
    assert [f.path.name for f in choose_surplus(files, 45)] == ["old", "middle"]
    assert [f.path.name for f in choose_surplus(files, 0)] == ["old", "middle", "new"]


def make_log(pods: Path, uid: str, name: str, size: int, written_at: float) -> Path:
    folder = pods / uid / "containers" / "main" / "0.0"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(b"x" * size)
    os.utime(path, (written_at, written_at))
    return path


def test_logs_of_running_pods_stay_whatever_they_are(tmp_path: Path) -> None:
    old = make_log(tmp_path, "ended", "log.1", 100, 1)
    newer = make_log(tmp_path, "ended", "log", 100, 2)
    running = make_log(tmp_path, "running", "log", 1000, 0)
    assert trim_logs(tmp_path, frozenset({"running"}), 150) == 1
    assert not old.exists()
    assert newer.exists()
    assert running.exists()
    assert (newer.parent / "log.cut").exists(), "readers are told"
    assert trim_logs(tmp_path, frozenset({"running"}), 150) == 0
