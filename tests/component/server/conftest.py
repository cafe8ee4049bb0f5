"""A registry in a folder of its own, on the real clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.component.server.registries import open_registry
from trainwright.server.inprocess import InProcessApi

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from trainwright.server.registry import Registry


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[Registry]:
    """An empty server without admission beyond schemas."""
    opened = await open_registry(tmp_path / "data")
    yield opened
    await opened.close()


@pytest.fixture
def api(registry: Registry) -> InProcessApi:
    """The in-process door to `registry`."""
    return InProcessApi(registry)
