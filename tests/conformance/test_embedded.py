"""The embedded server answers scenarios as a real API server did; `tests/cluster` proves the record."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.conformance.player import (
    Player,
    Target,
    find_differences,
    list_scenarios,
    load_record,
    load_scenario,
)
from tests.support.planes import make_plane

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    controllers = "garbage,namespace"
    folder = tmp_path_factory.mktemp("embedded")
    with make_plane(folder, "--no-node", "--controllers", controllers) as plane:
        connection = plane.connection
        ca_file = folder / "ca.crt"
        ca_file.write_text(connection.ca_data)
        yield Target(connection.server, ca_file, connection.token)


@pytest.mark.parametrize("name", list_scenarios())
def test_the_embedded_server_answers_as_a_real_one(target: Target, name: str) -> None:
    answers = Player(target, f"play-{uuid.uuid4().hex[:8]}").play(load_scenario(name))
    record = load_record(name)
    assert len(answers) == len(record)
    found = [
        f"step {number} ({ours['step']}): {line}"
        for number, (ours, theirs) in enumerate(zip(answers, record, strict=True))
        for line in find_differences(ours, theirs)
    ]
    assert not found, "\n".join(found)
