"""Joining a running container: its output so far and from then on, read from its log."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.node.exec import STDOUT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachQuery:
    """The log that an attach reads: all of the present run, until it ends."""

    container: str
    follow: bool = True
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since: datetime | None = None


class AttachSession:
    """One joined container. It takes no input: the shim alone holds the process' streams."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Both streams, as stdout: the log keeps them as one."""
        async for chunk in self._chunks:
            yield STDOUT, chunk

    async def write(self, data: bytes) -> None:
        """Nothing reads input."""

    async def close_stdin(self) -> None:
        """Nothing reads input."""

    async def resize(self, width: int, height: int) -> None:
        """There is no terminal."""

    async def wait(self) -> int:
        """An attach ends well whatever the container's exit code is."""
        return 0

    async def close(self) -> None:
        """Stop reading."""
        if isinstance(self._chunks, AsyncGenerator):
            await self._chunks.aclose()
