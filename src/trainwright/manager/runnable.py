"""The one shape that every part of a manager has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio


class Runnable(Protocol):
    """A part of a manager, from its start to its end."""

    name: str
    needs_lease: bool
    """Whether it runs only while this process holds the Lease, because it writes."""

    async def run(self, stopping: asyncio.Event) -> None:
        """Work until `stopping` is set, finish what is in work, and return.

        An error, or a return before, ends the manager.
        """
        ...

    def find_unready(self) -> str:
        """Why `/readyz` should not say yes; "" when it may."""
        ...
