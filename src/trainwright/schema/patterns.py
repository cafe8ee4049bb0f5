"""Regular expressions of schemas: Go's syntax, run by Python's engine."""

from __future__ import annotations

import functools
import re

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


@functools.lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    r"""The Python pattern that finds what Go's would.

    Go's `$` is the end of the text only (Python's also stands before a last newline), its classes
    are ASCII, and it knows `\z` and `[[:alpha:]]`.

    Raises:
        ValueError: when the pattern is none.
    """
    try:
        return re.compile(_translate(pattern), re.ASCII)
    except re.error as error:
        raise ValueError(f'"{pattern}" is no regular expression: {error}') from error


def _translate(pattern: str) -> str:
    out: list[str] = []
    at, in_class = 0, False
    while at < len(pattern):
        pair = pattern[at : at + 2]
        named = re.match(r"\[:(\w+):\]", pattern[at:]) if in_class else None
        if pair[0] == "\\":
            out.append(r"\Z" if pair == r"\z" else pair)
            at += 2
            continue
        if named and named[1] in _CLASSES:
            out.append(_CLASSES[named[1]])
            at += len(named[0])
            continue
        if pair[0] == "[" and not in_class:
            in_class = True
            lead = re.match(r"\[\^?\]?", pattern[at:])
            start = lead[0] if lead else "["
            out.append(start.replace("]", r"\]"))
            at += len(start)
            continue
        if pair[0] == "]":
            in_class = False
        out.append(r"\[" if in_class and pair[0] == "[" else pair[0])
        if pair[0] == "$" and not in_class and "(?m" not in pattern:
            out[-1] = r"\Z"
        at += 1
    return "".join(out)
