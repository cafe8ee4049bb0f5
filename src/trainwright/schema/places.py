"""Where in an object a check stands: links to the parent, made into text only for an error."""

from __future__ import annotations

Place = tuple["Place | None", "str | int"]
"""The place of the parent, and the key or index below it."""


def render_place(place: Place | None) -> str:
    """The path as errors write it: `spec.jobs[0].name`; the root is `<nil>`."""
    steps = []
    while place is not None:
        place, step = place
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "".join(reversed(steps)).removeprefix(".") or "<nil>"
