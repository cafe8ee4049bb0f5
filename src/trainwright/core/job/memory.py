"""What the Job controller remembers of one Job between passes; losing it at a crash is safe.

A pod's name is random, so a lister that lags could make a pass create a pod twice. Names that were
chosen and not yet seen are therefore chosen again: the second create finds the first one's pod.
A fresh process lists everything anew and needs no memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.core.names import MAX_LABEL, SUFFIX_LENGTH

if TYPE_CHECKING:
    from collections.abc import Callable, Set
    from datetime import datetime


class JobMemory:
    """Names in flight, and when pods failed or succeeded, for one Job's uid."""

    def __init__(self, suffix: Callable[[], str]) -> None:
        """`suffix` returns 5 random characters of `SUFFIX_ALPHABET`."""
        self._suffix = suffix
        self._unseen: dict[int, list[str]] = {}
        self.failures: dict[str, tuple[datetime, int]] = {}
        """Finish time and completion index (-1 without) of failed pods by uid."""
        self.successes: dict[str, datetime] = {}

    def observe(self, names: Set[str]) -> None:
        """Forget the names in flight that the lister shows by now."""
        for index, unseen in list(self._unseen.items()):
            self._unseen[index] = [name for name in unseen if name not in names]

    def choose_name(self, prefix: str, index: int, used: Set[str]) -> str:
        """A pod name for the index (-1 without): one in flight, or a new one.

        Args:
            prefix: `<job>-` or `<job>-<index>-`; cut so that the name is a DNS label.
            index: the completion index.
            used: names that this pass has given out.
        """
        unseen = self._unseen.setdefault(index, [])
        for name in unseen:
            if name not in used:
                return name
        name = prefix[: MAX_LABEL - SUFFIX_LENGTH] + self._suffix()
        unseen.append(name)
        return name
