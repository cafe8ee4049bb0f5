"""A store on a small file system that something else fills to the last byte."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.component.server.registries import make_config_map, open_registry
from trainwright.api import kinds
from trainwright.base.errors import ApiError
from trainwright.machinery.api import PatchType
from trainwright.server.inprocess import InProcessApi

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DISK_BYTES = 64 * 1024 * 1024


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own."""
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(DISK_BYTES)
    made = shutil.which("mkfs.ext4") and subprocess.run(
        ["mkfs.ext4", "-q", str(image)], check=False, capture_output=True
    )
    mount = ["mount", "-o", "loop", str(image), str(folder)]
    if not made or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs root and mkfs.ext4 to make a file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


class Filler:
    """Takes every byte that is free, again and again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("wb", buffering=0)

    def fill(self) -> None:
        for size in (1024 * 1024, 4096, 1):
            try:
                while self._file.write(b"x" * size):
                    pass
            except OSError:
                continue

    def remove(self) -> None:
        self._file.close()
        self.path.unlink()


@contextmanager
def filling(path: Path) -> Iterator[Filler]:
    filler = Filler(path)
    filler.fill()
    yield filler
    filler.remove()


async def patch(api: InProcessApi, name: str, **data: Any) -> None:
    await api.patch(
        kinds.CONFIG_MAP, "default", name, {"data": data}, type=PatchType.MERGE, field_manager="m"
    )


async def test_deletions_and_updates_go_through_when_there_is_not_a_byte_left(disk: Path) -> None:
    registry = await open_registry(disk / "data")
    api = InProcessApi(registry)
    for number in range(600):
        obj = make_config_map(f"c{number}", text="y" * 6000)
        await api.create(kinds.CONFIG_MAP, obj, field_manager="m")
    with filling(disk / "filler") as filler:
        assert shutil.disk_usage(disk).free < 4096
        answers: list[str] = []
        for number in range(0, 600, 2):
            await api.delete(kinds.CONFIG_MAP, "default", f"c{number}")
            await patch(api, f"c{number + 1}", more="z" * 3000)
            if number % 50 == 0:
                filler.fill()
                answers.append(await create(api, f"new-{number}"))
        assert "507" in answers[-1]
        assert "is full" in answers[-1]
        assert os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize < 1024 * 1024
    await asyncio.sleep(0)
    await api.create(kinds.CONFIG_MAP, make_config_map("after"), field_manager="m")
    await registry.close()
    again = await open_registry(disk / "data")
    names = {obj["metadata"]["name"] for obj in (await list_all(InProcessApi(again)))}
    await again.close()
    assert "after" in names
    assert {f"c{number}" for number in range(1, 600, 2)} <= names
    assert not {f"c{number}" for number in range(0, 600, 2)} & names


async def create(api: InProcessApi, name: str) -> str:
    try:
        await api.create(kinds.CONFIG_MAP, make_config_map(name), field_manager="m")
    except ApiError as error:
        return f"{error.status_code} {error.message}"
    return "created"


async def list_all(api: InProcessApi) -> Any:
    return (await api.list(kinds.CONFIG_MAP, "default")).items
