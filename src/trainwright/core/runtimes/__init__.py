"""The runtimes that come with Trainwright: YAML of ours in `trainwright/runtimes`, read here."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from trainwright.base.objects import Object


def load_shipped_runtimes() -> tuple[Object, ...]:
    """The shipped ClusterTrainingRuntimes, by name. Each call returns objects of its own."""
    return tuple(yaml.safe_load(text) for text in _texts())


@cache
def _texts() -> tuple[str, ...]:
    folder = files("trainwright") / "runtimes"
    found = [entry for entry in folder.iterdir() if entry.name.endswith(".yaml")]
    return tuple(entry.read_text("utf-8") for entry in sorted(found, key=lambda entry: entry.name))
