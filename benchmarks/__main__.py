"""Runs the rows that were asked for and prints one line, or one table row, for each figure."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.rows import ROWS

if TYPE_CHECKING:
    from benchmarks.measure import Figure


def describe_machine() -> str:
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    memory = int(Path("/proc/meminfo").read_text().split()[1]) // 1024**2
    return (
        f"{os.cpu_count()} cores ({model}), {memory} GiB, Linux {platform.release()}, "
        f"Python {platform.python_version()}; load average at the start {os.getloadavg()[0]:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "rows", nargs="*", metavar="ROW", help=f"of {', '.join(ROWS)}; all by default"
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller numbers")
    parser.add_argument(
        "--markdown", action="store_true", help="print a table for docs/performance.md"
    )
    options = parser.parse_args()
    unknown = [row for row in options.rows if row not in ROWS]
    if unknown:
        parser.error(f"no row is called {', '.join(unknown)}; there are {', '.join(ROWS)}")
    print(describe_machine(), flush=True)
    if options.markdown:
        print("\n| what | figure | budget |\n|---|---|---|", flush=True)
    for name in options.rows or ROWS:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        for figure in asyncio.run(ROWS[name](options.quick)):
            print(render(figure, markdown=options.markdown), flush=True)


def render(figure: Figure, *, markdown: bool) -> str:
    if markdown:
        return f"| {figure.what} | {figure.value} | {figure.budget or 'published'} |"
    return f"{figure.what:<62} {figure.value:<34} {figure.budget and 'budget ' + figure.budget}"


if __name__ == "__main__":
    main()
