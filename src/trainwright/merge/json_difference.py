"""JSON patches between two documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.merge.merge_patch import is_same_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainwright.base.objects import Json


def build_json_patch(before: Json, after: Json) -> list[dict[str, Any]]:
    """Operations of RFC 6902 that make `after` of `before`; none when they are the same.

    Lists of equal length are compared element by element, others are replaced as a whole.
    """
    return list(_find_operations("", before, after))


def _find_operations(path: str, before: Json, after: Json) -> Iterator[dict[str, Any]]:
    if is_same_json(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before:
            if key not in after:
                yield {"op": "remove", "path": _join(path, key)}
        for key, value in after.items():
            if key in before:
                yield from _find_operations(_join(path, key), before[key], value)
            else:
                yield {"op": "add", "path": _join(path, key), "value": value}
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _find_operations(f"{path}/{index}", old, new)
    else:
        yield {"op": "replace", "path": path, "value": after}


def _join(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
