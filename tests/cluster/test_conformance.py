"""A real API server still answers what `tests/conformance/recorded` says.

`RECORD=1` writes the record anew.
"""

from __future__ import annotations

import os
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
    write_record,
)

if TYPE_CHECKING:
    from tests.cluster.api_lane import ApiLane


@pytest.mark.parametrize("name", list_scenarios())
def test_the_record_is_what_a_real_server_answers(lane: ApiLane, name: str) -> None:
    target = Target(lane.url, lane.ca_file, lane.token)
    answers = Player(target, f"play-{uuid.uuid4().hex[:8]}").play(load_scenario(name))
    if os.environ.get("RECORD"):
        write_record(name, answers)
    assert not find_differences(answers, load_record(name))
