"""Printer columns: the JSONPath subset they use, and how their values are shown."""

from __future__ import annotations

import functools
import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from trainwright.base.times import parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from trainwright.base.objects import Json, ObjectView

_NAME = re.compile(r"\.?(?:\\.|[^.\[\]\\{}()\s'\"])+")
_INDEX = re.compile(r"\[\s*(-?\d+)\s*\]")
_SLICE = re.compile(r"\[\s*(-?\d*)\s*:\s*(-?\d*)\s*\]")
_QUOTED = re.compile(r"""\[\s*(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)")\s*\]""")
_WILDCARD = re.compile(r"\[\s*\*\s*\]")
_FILTER = re.compile(
    r"""\[\?\(\s*@((?:\.[\w-]+|\['[^']*'\])*)\s*(?:(==|!=|<=|>=|<|>)\s*"""
    r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|-?\d+(?:\.\d+)?|true|false))?\s*\)\]"""
)


_ORDERINGS: Mapping[str, Callable[[Json, Json], Json]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class _Step:
    """One step of a path; `kind` is name, index, slice, any, descend or filter."""

    kind: str
    name: str = ""
    start: int | None = None
    stop: int | None = None
    path: tuple[_Step, ...] = ()
    operator: str = ""
    value: Json = None


def find_values(path: str, obj: Json) -> list[Json]:
    """Every value that the JSONPath finds, in order; absent steps find nothing.

    Args:
        path: with or without braces and leading `$` or `.`: `.status.conditions[-1:].type`,
            `{.items[*].metadata.name}`, `.c[?(@.type=="Ready")].status`, `.labels['a/b']`.
        obj: any JSON value.

    Raises:
        ValueError: when the path is not of the subset.
    """
    return _follow(compile_path(path), [obj])


@functools.lru_cache(maxsize=1024)
def compile_path(path: str) -> tuple[_Step, ...]:
    """The steps of a JSONPath.

    Raises:
        ValueError: naming the part that was not understood.
    """
    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    text = text.removeprefix("$")
    steps: list[_Step] = []
    at = 0
    while at < len(text):
        step, end = _read_step(text, at)
        if step is None:
            raise ValueError(f'JSONPath "{path}": cannot read "{text[at:]}"')
        if step.kind != "root":
            steps.append(step)
        at = end
    return tuple(steps)


def _read_step(text: str, at: int) -> tuple[_Step | None, int]:
    if text.startswith("..", at):
        return _Step("descend"), at + 1
    if text[at:] == ".":
        return _Step("root"), at + 1
    if match := _WILDCARD.match(text, at):
        return _Step("any"), match.end()
    if match := _INDEX.match(text, at):
        return _Step("index", start=int(match[1])), match.end()
    if match := _SLICE.match(text, at):
        start, stop = (int(part) if part else None for part in (match[1], match[2]))
        return _Step("slice", start=start, stop=stop), match.end()
    if match := _QUOTED.match(text, at):
        name = match[1] if match[1] is not None else match[2]
        return _Step("name", re.sub(r"\\(.)", r"\1", name)), match.end()
    if match := _FILTER.match(text, at):
        value = _read_literal(match[3]) if match[3] is not None else None
        inner = compile_path(match[1]) if match[1] else ()
        return _Step("filter", path=inner, operator=match[2] or "", value=value), match.end()
    if text[at] == "." and text.startswith("[", at + 1):
        return _Step("root"), at + 1
    if match := _NAME.match(text, at):
        name = match[0].removeprefix(".")
        kind = "any" if name == "*" else "name"
        return _Step(kind, re.sub(r"\\(.)", r"\1", name)), match.end()
    return None, at


def _read_literal(text: str) -> Json:
    if text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return msgspec.json.decode(text)


def _follow(steps: Sequence[_Step], values: list[Json]) -> list[Json]:
    for step in steps:
        values = [found for value in values for found in _take(step, value)]
    return values


def _take(step: _Step, value: Json) -> Iterator[Json]:
    if step.kind == "descend":
        yield from _descend(value)
    elif step.kind == "name":
        if isinstance(value, dict) and step.name in value:
            yield value[step.name]
    elif step.kind == "any":
        if isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, list):
            yield from value
    elif isinstance(value, list):
        yield from _take_items(step, value)


def _take_items(step: _Step, items: list[Json]) -> Iterator[Json]:
    if step.kind == "index" and step.start is not None:
        if -len(items) <= step.start < len(items):
            yield items[step.start]
    elif step.kind == "slice":
        yield from items[step.start : step.stop]
    elif step.kind == "filter":
        yield from (item for item in items if _passes(step, item))


def _descend(value: Json) -> Iterator[Json]:
    yield value
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in below:
        yield from _descend(item)


def _passes(step: _Step, item: Json) -> bool:
    found = _follow(step.path, [item])
    if not step.operator:
        return bool(found)
    if not found:
        return False
    seen, wanted = found[0], step.value
    if step.operator == "==":
        return bool(seen == wanted)
    if step.operator == "!=":
        return bool(seen != wanted)
    try:
        return bool(_ORDERINGS[step.operator](seen, wanted))
    except TypeError:
        return False


def render_cell(column: Mapping[str, Json], obj: ObjectView, now: datetime) -> Json:
    """The cell of an additionalPrinterColumn; None where the value is absent or of another type.

    Args:
        column: with `jsonPath` and `type`: string, integer, number, boolean or date.
        obj: the object of the row.
        now: for ages of `date` columns.

    Source: Kubernetes, CustomResourceDefinition, additionalPrinterColumns.
    """
    try:
        found = find_values(str(column["jsonPath"]), obj)
    except ValueError:
        return None
    if not found:
        return None
    value = found[0]
    match column.get("type"):
        case "string":
            return render_text(value) if len(found) == 1 else ",".join(map(render_text, found))
        case "date":
            return _render_date(value, now)
        case "integer":
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            return int(value) if is_number else None
        case "number":
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            return float(value) if is_number else None
        case "boolean":
            return value if isinstance(value, bool) else None
    return None


def render_text(value: Json) -> str:
    """A JSON value as a table or `-o jsonpath` shows it: texts bare, the rest as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return msgspec.json.encode(value).decode()


def _render_date(value: Json, now: datetime) -> str:
    if not isinstance(value, str):
        return "<unknown>"
    try:
        return render_age((now - parse_time(value)).total_seconds())
    except ValueError:
        return "<invalid>"


def render_age(seconds: float) -> str:
    """A duration as kubectl writes ages: `45s`, `3m20s`, `12m`, `5h30m`, `2d4h`, `30d`, `3y10d`."""
    if seconds < -1:
        return "<invalid>"
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return _pair(minutes, "m", whole % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _pair(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    if days < 365 * 8:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
