"""What a full disk does to a container: it does not start without its records, its log gives way."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest

from trainwright.node.instance import list_instances, start_instance
from trainwright.node.shim import log, records


def test_no_process_starts_without_room_for_its_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_folder: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(records, "reserve_records", refuse)
    with pytest.raises(OSError, match="No space left"):
        start_instance(tmp_path / "0.0", {}, container_id="x", program=Path(sys.executable))
    assert not (tmp_path / "0.0").exists()


def test_a_half_made_folder_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "0.0").mkdir()
    (tmp_path / "0.0" / "id").touch()
    assert list_instances(tmp_path) == []


def test_a_log_leaves_the_last_room_and_tells_what_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = log.Log(str(tmp_path / "log"), 10_000, 2)
    monkeypatch.setattr(log, "has_room", lambda _path: False)
    output.write("stdout", b"lost\n")
    assert (tmp_path / "log").read_bytes() == b""
    monkeypatch.setattr(log, "has_room", lambda _path: True)
    output.write("stdout", b"kept\n")
    text = (tmp_path / "log").read_text()
    assert "the disk was full" in text
    assert text.endswith(" stdout F kept\n")
