"""How objects and tables are printed: `-o json|yaml|name|wide`, colours only on a terminal."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, TextIO

from trainwright.api.kinds import find_kind
from trainwright.api.manifests import render_yaml
from trainwright.base.objects import Json, Object, name_of
from trainwright.base.times import seconds_between

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rich.console import Console

    from trainwright.cli.options import Output

RANK_COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "red", "bright_cyan", "bright_green")


def print_document(value: Json, output: str) -> None:
    """Any value as JSON or YAML."""
    if output == "json":
        print(json.dumps(value, indent=4, ensure_ascii=False))
    else:
        print(render_yaml(value), end="")


def print_object(obj: Object, output: Output) -> None:
    """One object as JSON, YAML or `resource/name`."""
    if output == "name":
        print(qualified_name(obj))
    else:
        print_document(obj, output)


def print_list(objects: Sequence[Object], output: Output) -> None:
    """Several objects: a `List` as JSON or YAML, or one name a line."""
    if output == "name":
        for obj in objects:
            print(qualified_name(obj))
    else:
        print_object({"apiVersion": "v1", "kind": "List", "items": list(objects)}, output)


def qualified_name(obj: Object) -> str:
    """`trainjob.trainer.kubeflow.org/name`, as kubectl's `-o name`."""
    kind = find_kind(obj.get("apiVersion", ""), obj.get("kind", ""))
    if kind is None:
        return f"{obj.get('kind', '').lower()}/{name_of(obj)}"
    group = f".{kind.group}" if kind.group else ""
    return f"{kind.singular}{group}/{name_of(obj)}"


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A plain table with aligned columns, as kubectl prints them."""
    table = [list(headers), *[list(row) for row in rows]]
    widths = [max(len(row[column]) for row in table) for column in range(len(headers))]
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        print("   ".join(cells).rstrip())


def render_age(created: str, now: datetime) -> str:
    """How long ago, as kubectl writes it: `42s`, `5m10s`, `3h`, `2d`."""
    if not created:
        return "<unknown>"
    seconds = max(0, int(seconds_between(created, now)))
    return render_duration(seconds)


def render_duration(seconds: int) -> str:
    """A duration in at most two units."""
    if seconds < 120:
        return f"{seconds}s"
    minutes, rest = divmod(seconds, 60)
    if minutes < 10:
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours, rest = divmod(minutes, 60)
    if hours < 8:
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    return f"{hours}h" if hours < 48 else f"{hours // 24}d"


def make_console(stream: TextIO | None = None) -> Console:
    """A console that colours only for a terminal and when NO_COLOR is not set."""
    from rich.console import Console

    stream = stream or sys.stdout
    return Console(
        file=stream,
        color_system=None if os.environ.get("NO_COLOR") else "auto",  # None: no bold, no dim either
        highlight=False,
        soft_wrap=True,
        markup=False,
    )
