"""One plane for the plane tests of a module; a registry of its own for each of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.planes import TestPlane, make_plane, make_runtime
from trainwright.api.kinds import CLUSTER_TRAINING_RUNTIME
from trainwright.machinery.clock import SystemClock
from trainwright.server.inprocess import InProcessApi
from trainwright.server.registry import Registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestPlane]:
    with make_plane(tmp_path_factory.mktemp("plane")) as running:
        yield running


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[Registry]:
    """A server with every kind's admission and the runtime `plain`; nothing reconciles."""
    opened = await Registry.open(tmp_path / "store", SystemClock())
    api = InProcessApi(opened)
    await api.create(CLUSTER_TRAINING_RUNTIME, make_runtime("plain"), field_manager="test")
    yield opened
    await opened.close()


@pytest.fixture
def api(registry: Registry) -> InProcessApi:
    return InProcessApi(registry)
