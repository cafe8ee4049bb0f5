"""What must not be imported where a start has to be quick; the figures are in benchmarks."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("aiohttp", "cryptography", "rich", "typer", "prometheus_client", "cel_expr_python")


@pytest.mark.parametrize(
    ("module", "allowed"),
    [("trainwright", ()), ("trainwright.cli.main", ("typer",)), ("trainwright.plane.__main__", ())],
)
def test_heavy_libraries_wait_until_they_are_needed(module: str, allowed: tuple[str, ...]) -> None:
    program = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded & set(HEAVY) <= set(allowed)
