"""Reading a JSON document field by field, strictly: every finding is kept, with its path."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

from trainwright.base.errors import FieldError, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(h|ms|m|s|us|µs|ns)")


def parse_go_duration(text: str) -> float:
    """Seconds of a duration as Go writes it, such as `1m30s`.

    Raises:
        ValueError: it is none.
    """
    if text in {"0", "+0", "-0"}:
        return 0.0
    sign, rest = (-1.0, text[1:]) if text[:1] == "-" else (1.0, text.removeprefix("+"))
    parts = list(_PART.finditer(rest))
    if not parts or "".join(part.group() for part in parts) != rest:
        raise ValueError(f'"{text}" is no duration')
    return sign * sum(float(part[1]) * _UNITS_S[part[2]] for part in parts)


class Fields:
    """A map of the document that is read: hands out its fields, and knows which nobody asked for."""

    def __init__(self, path: str, body: Mapping[str, Any], errors: list[FieldError]) -> None:
        self._path = path
        self._body = body
        self._asked: set[str] = set()
        self.errors = errors

    def path(self, name: str) -> str:
        """The JSON path of a field."""
        return f"{self._path}.{name}" if self._path else name

    def refuse(self, name: str, detail: str, reason: Reason = Reason.INVALID) -> None:
        """Note what is wrong with a field."""
        self.errors.append(FieldError(reason, self.path(name), self._body.get(name), detail))

    def text(self, name: str, default: str = "") -> str:
        """A text."""
        found = self._value(name, str, "a text")
        return default if found is None else str(found)

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false."""
        found = self._value(name, bool, "true or false")
        return default if found is None else bool(found)

    def integer(self, name: str, default: int, *, least: int, most: int = 2**31 - 1) -> int:
        """A whole number between two bounds."""
        found = self._value(name, int, "a whole number")
        if found is None:
            return default
        if not least <= found <= most:
            self.refuse(name, f"must be between {least} and {most}")
            return default
        return int(found)

    def number(self, name: str, default: float) -> float:
        """A number that is not negative."""
        found = self._value(name, (int, float), "a number")
        if found is None:
            return default
        if found < 0:
            self.refuse(name, "must not be negative")
            return default
        return float(found)

    def duration(self, name: str, default_s: float) -> float:
        """Seconds, written as `15s`; more than none."""
        found = self._value(name, str, "a duration such as 15s")
        if found is None:
            return default_s
        try:
            seconds = parse_go_duration(found)
        except ValueError:
            seconds = 0.0
        if seconds <= 0:
            self.refuse(name, "must be a duration above 0, such as 15s")
            return default_s
        return seconds

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        found = self._value(name, list, "a list of texts")
        if found is None:
            return ()
        if not all(isinstance(item, str) for item in found):
            self.refuse(name, "must be a list of texts", Reason.TYPE_INVALID)
            return ()
        return tuple(found)

    def map(self, name: str) -> Fields:
        """A map below this one."""
        return Fields(self.path(name), self._value(name, dict, "a map") or {}, self.errors)

    def items(self, read: Callable[[Fields, str], Any]) -> dict[str, Any]:
        """Every field of a map with free keys, each read with `read`."""
        return {name: read(self, name) for name in self._body}

    def has(self, name: str) -> bool:
        """Whether a field is there and not null."""
        return self._body.get(name) is not None

    def finish(self) -> None:
        """Refuse the fields that nobody asked for."""
        for name in self._body:
            if name in self._asked:
                continue
            near = difflib.get_close_matches(name, sorted(self._asked), n=1)
            hint = f'; did you mean "{near[0]}"?' if near else ""
            wanted = ", ".join(sorted(self._asked))
            self.errors.append(
                FieldError(
                    Reason.INVALID, self.path(name), name, f"unknown field{hint} (known: {wanted})"
                )
            )

    def _value(self, name: str, kinds: type | tuple[type, ...], wanted: str) -> Any:
        self._asked.add(name)
        found = self._body.get(name)
        is_bool = isinstance(found, bool) and kinds is not bool
        if found is not None and (is_bool or not isinstance(found, kinds)):
            self.refuse(name, f"must be {wanted}", Reason.TYPE_INVALID)
            return None
        return found
