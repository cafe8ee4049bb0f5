"""Unmodified Python clients, each in the virtual environment that `scripts/env clients` makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.serving import running_server

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize(
    ("environment", "program"),
    [
        (".venv-kubernetes35", "kubernetes_client.py"),
        (".venv-kubernetes37", "kubernetes_client.py"),
        (".venv-kubeflow", "kubeflow_runtimes.py"),
    ],
)
async def test_unmodified_client(tmp_path: Path, environment: str, program: str) -> None:
    python = ROOT / environment / "bin" / "python"
    assert python.exists(), f"{environment} is missing; run scripts/env clients"
    async with running_server(tmp_path) as server:
        done = await server.run(str(python), str(PROGRAMS / program))
    assert done.code == 0, done.err
