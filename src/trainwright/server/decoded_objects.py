"""Decoded objects that are read again and again, kept up to a number of bytes."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainwright.base.objects import Object
    from trainwright.server.stored import Stored


class DecodedObjects:
    """Least recently used goes first. What is handed out is shared and never edited."""

    def __init__(self, max_bytes: int = 8 * 1024 * 1024) -> None:
        self._max_bytes = max_bytes
        """Of JSON; as dicts the same objects take some eight times as much."""
        self._bytes = 0
        self._objects: OrderedDict[Stored, Object] = OrderedDict()

    def get(self, stored: Stored) -> Object:
        """The object behind `stored`."""
        obj = self._objects.get(stored)
        if obj is not None:
            self._objects.move_to_end(stored)
            return obj
        obj = stored.decode()
        self.put(stored, obj)
        return obj

    def put(self, stored: Stored, obj: Object) -> None:
        """Remember an object that is at hand anyway."""
        self._objects[stored] = obj
        self._bytes += len(stored.data)
        while self._bytes > self._max_bytes:
            oldest, _ = self._objects.popitem(last=False)
            self._bytes -= len(oldest.data)

    def drop(self, stored: Stored) -> None:
        """Forget a state that has been overwritten."""
        if self._objects.pop(stored, None) is not None:
            self._bytes -= len(stored.data)
