"""Feature gates, as the file and the command line give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainwright.base.errors import FieldError, InvalidObject, Reason
from trainwright.core.configuration.settings import GATES

if TYPE_CHECKING:
    from collections.abc import Mapping

ALL_ALPHA, ALL_BETA = "AllAlpha", "AllBeta"
KNOWN = (*GATES, ALL_ALPHA, ALL_BETA)
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")


def parse_gates(text: str) -> Mapping[str, bool]:
    """Read `Name=true,Other=false` of the command line.

    Raises:
        InvalidObject: an unknown gate, or a value that is neither true nor false.
    """
    found: dict[str, bool] = {}
    errors = []
    for word in (word.strip() for word in text.split(",")):
        if not word:
            continue
        name, equals, value = (part.strip() for part in word.partition("="))
        if not equals or value not in (*_TRUE, *_FALSE):
            detail = "must be Name=true or Name=false"
            errors.append(FieldError(Reason.INVALID, "--feature-gates", word, detail))
        elif name not in KNOWN:
            errors.append(unknown_gate("--feature-gates", name))
        else:
            found[name] = value in _TRUE
    if errors:
        raise InvalidObject("the command line", errors)
    return found


def unknown_gate(path: str, name: str) -> FieldError:
    """The finding for a gate that there is not."""
    return FieldError(
        Reason.NOT_SUPPORTED, path, name, f"no feature gate; there are {', '.join(KNOWN)}"
    )


def resolve_gates(*said: Mapping[str, bool]) -> Mapping[str, bool]:
    """Whether each gate is on; later words win, and a gate's own name wins over AllAlpha."""
    merged: dict[str, bool] = {}
    for words in said:
        merged |= words
    all_alpha = merged.get(ALL_ALPHA)
    return {
        name: merged.get(name, default if all_alpha is None else all_alpha)
        for name, default in GATES.items()
    }
