"""What `import trainwright` and `trainwright --help` cost, beside bare Python and the public SDK."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Figure, python, rounds, run_process, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

PUBLIC_SDK = Path(".venv-kubeflow/bin/python")


async def measure(quick: bool) -> Sequence[Figure]:
    count = 3 if quick else 11
    bare = [python("pass") for _ in range(count)]
    ours = [python("import trainwright") for _ in range(count)]
    cpu_ms = 1000 * (_median(ours, 1) - _median(bare, 1))
    memory_mb = _median(ours, 2) - _median(bare, 2)
    command = str(Path(sys.executable).with_name("trainwright"))
    help_ms = rounds(count, lambda: 1000 * run_process([command, "--help"])[0])
    figures = [
        Figure("`import trainwright` above bare Python, CPU", f"{cpu_ms:.0f} ms", "100 ms"),
        Figure("`import trainwright` above bare Python, memory", f"{memory_mb:.1f} MB", "30 MB"),
        Figure("`trainwright --help`", spread(help_ms, "ms"), "250 ms"),
    ]
    if PUBLIC_SDK.exists():
        theirs = [
            run_process([str(PUBLIC_SDK), "-c", "import kubeflow.trainer"])
            for _ in range(min(count, 5))
        ]
        figures.append(
            Figure(
                "the public SDK's import in the same run, CPU and memory",
                f"{1000 * (_median(theirs, 1) - _median(bare, 1)):.0f} ms, "
                f"{_median(theirs, 2) - _median(bare, 2):.0f} MB",
                "compare",
            )
        )
    return figures


def _median(runs: Sequence[tuple[float, float, float]], column: int) -> float:
    return statistics.median(run[column] for run in runs)
