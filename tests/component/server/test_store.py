from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.component.server.registries import make_config_map, open_registry
from trainwright.api import kinds
from trainwright.base.errors import ApiError, Gone, LocalRunError
from trainwright.machinery.api import PatchType
from trainwright.server import store as store_module
from trainwright.server.inprocess import InProcessApi
from trainwright.server.requests import ListOptions, WatchOptions
from trainwright.server.store_file import UPGRADES, write_rows
from trainwright.server.store_room import BALLAST, Ballast

if TYPE_CHECKING:
    from pathlib import Path

    from trainwright.server.registry import Registry

WRITER = """
import asyncio, sys
from pathlib import Path
from tests.component.server.registries import make_config_map, open_registry
from trainwright.api import kinds
from trainwright.server.inprocess import InProcessApi

async def main(folder, prefix):
    registry = await open_registry(folder)
    api = InProcessApi(registry)

    async def write(worker):
        number = 0
        while True:
            name = f"{prefix}-{worker}-{number}"
            await api.create(kinds.CONFIG_MAP, make_config_map(name), field_manager="m")
            print(name, flush=True)
            number += 1

    await asyncio.gather(*(write(worker) for worker in range(8)))

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


def names(registry: Registry) -> list[str]:
    page = registry.list(kinds.CONFIG_MAP, "default", ListOptions())
    return [stored.name for stored in page.items]


async def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    first = await open_registry(tmp_path / "data")
    api = InProcessApi(first)
    made = await api.create(kinds.CONFIG_MAP, make_config_map("kept", x="1"), field_manager="m")
    await api.create(kinds.CONFIG_MAP, make_config_map("gone"), field_manager="m")
    await api.delete(kinds.CONFIG_MAP, "default", "gone")
    last = first.resource_version
    await first.close()

    second = await open_registry(tmp_path / "data")
    try:
        assert second.get(kinds.CONFIG_MAP, "default", "kept").decode() == made
        assert names(second) == ["kept"]
        assert second.resource_version == last
        with pytest.raises(Gone):
            second.watch(kinds.CONFIG_MAP, "", WatchOptions(resource_version="1"))
        again = await InProcessApi(second).create(
            kinds.CONFIG_MAP, make_config_map("new"), field_manager="m"
        )
        assert int(again["metadata"]["resourceVersion"]) > int(last)
    finally:
        await second.close()


def write_until_killed(folder: Path) -> set[str]:
    """Eight writers are killed in the middle of it; the names that they had answers for."""
    acknowledged: set[str] = set()
    for round_number in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), f"r{round_number}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        for _ in range(30 + 17 * round_number):
            acknowledged.add(process.stdout.readline().strip())
        process.send_signal(signal.SIGKILL)
        acknowledged |= set(process.stdout.read().split()[:-1])
        process.stdout.close()
        process.wait()
    return acknowledged


async def test_crds_of_ours_are_brought_up_to_date_at_the_start(tmp_path: Path) -> None:
    first = await open_registry(tmp_path / "data")
    api = InProcessApi(first)
    name = "trainjobs.trainer.kubeflow.org"
    crd = await api.get(kinds.CUSTOM_RESOURCE_DEFINITION, "", name)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    trainer = schema["properties"]["spec"]["properties"].pop("trainer")
    await api.replace(kinds.CUSTOM_RESOURCE_DEFINITION, crd, field_manager="older")
    await first.close()

    second = await open_registry(tmp_path / "data")
    try:
        crd = second.get(kinds.CUSTOM_RESOURCE_DEFINITION, "", name).decode()
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        assert schema["properties"]["spec"]["properties"]["trainer"] == trainer
        served = second.find_served("trainer.kubeflow.org", "v1alpha1", "trainjobs")
        assert served is not None
        assert served.schema == schema
    finally:
        await second.close()


async def test_killed_in_the_middle_of_writes_loses_nothing_acknowledged(tmp_path: Path) -> None:
    acknowledged = await asyncio.to_thread(write_until_killed, tmp_path / "data")
    registry = await open_registry(tmp_path / "data")
    try:
        assert acknowledged - set(names(registry)) == set()
    finally:
        await registry.close()


async def test_second_opener_is_told_who_has_the_folder(tmp_path: Path) -> None:
    registry = await open_registry(tmp_path / "data")
    with pytest.raises(LocalRunError, match=f"in use by process {os.getpid()}"):
        await open_registry(tmp_path / "data")
    await registry.close()
    again = await open_registry(tmp_path / "data")
    await again.close()


async def test_files_are_for_their_owner_only(registry: Registry, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {path.name for path in folder.iterdir()} >= {"objects.db", "lock", BALLAST}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


async def test_another_process_cannot_write_to_a_store_in_use(
    registry: Registry, api: InProcessApi, tmp_path: Path
) -> None:
    await api.create(kinds.CONFIG_MAP, make_config_map("a"), field_manager="m")
    code = (
        "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('CREATE TABLE x (y)')"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "data" / "objects.db")]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=False
    )
    assert "database is locked" in done.stderr


async def test_newer_store_is_refused(tmp_path: Path) -> None:
    registry = await open_registry(tmp_path / "data")
    await registry.close()
    connection = sqlite3.connect(tmp_path / "data" / "objects.db")
    connection.execute(f"PRAGMA user_version={len(UPGRADES) + 1}")
    connection.close()
    with pytest.raises(LocalRunError, match="written by a newer trainwright"):
        await open_registry(tmp_path / "data")


async def test_idle_store_writes_nothing(registry: Registry, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()}
    registry.list(kinds.NAMESPACE, "", ListOptions())
    await asyncio.sleep(0.2)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()} == before


class FullDisk:
    """Commits fail as on a full disk: all of them, or only until the ballast is gone."""

    def __init__(self, ballast: Path | None) -> None:
        self.ballast = ballast

    def __call__(self, *args: Any, **settings: Any) -> None:
        if self.ballast is None or self.ballast.exists():
            raise sqlite3.OperationalError("database or disk is full")
        write_rows(*args, **settings)


async def test_full_disk_fails_the_whole_group_and_changes_nothing(
    registry: Registry, api: InProcessApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = registry.resource_version
    monkeypatch.setattr(store_module, "write_rows", FullDisk(None))
    creates = [
        api.create(kinds.CONFIG_MAP, make_config_map(f"c{i}"), field_manager="m") for i in range(5)
    ]
    outcomes = await asyncio.gather(*creates, return_exceptions=True)
    assert [isinstance(outcome, ApiError) for outcome in outcomes] == [True] * 5
    assert {outcome.status_code for outcome in outcomes if isinstance(outcome, ApiError)} == {507}
    assert "is full; nothing was changed" in str(outcomes[0])
    assert names(registry) == []
    monkeypatch.undo()
    made = await api.create(kinds.CONFIG_MAP, make_config_map("c0"), field_manager="m")
    assert int(made["metadata"]["resourceVersion"]) == int(before) + 1


async def test_full_disk_lets_deletions_pass_on_the_ballast(
    registry: Registry, api: InProcessApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.create(kinds.CONFIG_MAP, make_config_map("old"), field_manager="m")
    ballast = tmp_path / "data" / BALLAST
    monkeypatch.setattr(store_module, "write_rows", FullDisk(ballast))
    monkeypatch.setattr(Ballast, "has_room", lambda *_: False)
    with pytest.raises(ApiError, match="is full"):
        await api.create(kinds.CONFIG_MAP, make_config_map("new"), field_manager="m")
    await api.delete(kinds.CONFIG_MAP, "default", "old")
    with pytest.raises(ApiError, match="is full"):
        await api.create(kinds.CONFIG_MAP, make_config_map("new"), field_manager="m")
    assert names(registry) == []
    monkeypatch.undo()
    await api.create(kinds.CONFIG_MAP, make_config_map("new"), field_manager="m")
    assert ballast.exists()


async def test_cancelled_writer_leaves_its_object_whole(
    registry: Registry, api: InProcessApi
) -> None:
    task = asyncio.ensure_future(
        api.create(kinds.CONFIG_MAP, make_config_map("a", x="1"), field_manager="m")
    )
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    patched = await api.patch(
        kinds.CONFIG_MAP,
        "default",
        "a",
        {"data": {"y": "2"}},
        type=PatchType.MERGE,
        field_manager="m",
    )
    assert patched["data"] == {"x": "1", "y": "2"}
