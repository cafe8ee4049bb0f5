"""The choice of isolation, from the command line to the Pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.component.node.conftest import require_networks
from tests.support.planes import make_plane

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = ("--runtime", "plain-distributed")


@pytest.mark.parametrize("isolation", ["none", "namespace"])
def test_a_plane_isolates_as_it_was_told(tmp_path: Path, isolation: str) -> None:
    if isolation == "namespace":
        require_networks(tmp_path / "probe")
    with make_plane(tmp_path, "--isolation", isolation) as plane:
        assert f"isolation  {isolation} (" in plane.cli("status")
        script = "tail -n +3 /proc/net/dev | wc -l; echo end"
        text = plane.cli("run", *PLAIN, "--nodes", "2", "--", "sh", "-c", script)
        assert text.count("| end") == 2
        if isolation == "namespace":
            assert text.count("| 1\n") == 2
            said = plane.cli("run", "--isolation", "none", *PLAIN, "--", "true", code=None)
            assert "has isolation namespace, not none" in said
        plane.cli("down")
        assert plane.processes() == []
