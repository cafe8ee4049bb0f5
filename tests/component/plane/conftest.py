"""One plane for the tests of a module: their jobs have names of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.planes import TestPlane, make_plane

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestPlane]:
    with make_plane(tmp_path_factory.mktemp("plane")) as running:
        yield running
