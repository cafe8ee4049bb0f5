"""The lanes of this folder: one control plane for all tests that can share it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.api_lane import ApiLane, make_api_lane

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def lane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiLane]:
    """A control plane with the Job and JobSet controllers; tests use namespaces of their own."""
    folder = tmp_path_factory.mktemp("lane")
    with make_api_lane(folder, "kube-controller-manager", "kube-scheduler", "jobset") as running:
        yield running
