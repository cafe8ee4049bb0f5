"""A journal that tests can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainwright.core.journal import Fact


class KeptJournal:
    """Keeps every fact, in order."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []

    def record(self, fact: Fact) -> None:
        self.facts.append(fact)
