"""Sets of completion indexes as the wire writes them: `1,3-5,7`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def parse_indexes(text: str) -> frozenset[int]:
    """The indexes of `1,3-5,7`.

    Raises:
        ValueError: when the text has another form.
    """
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def render_indexes(indexes: Iterable[int]) -> str:
    """Increasing; runs of three and more as `a-b`, of two as `a,b`."""
    runs: list[list[int]] = []
    for index in sorted(set(indexes)):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs
    )
