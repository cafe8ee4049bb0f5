"""JSON merge patch (RFC 7386): objects merge, null deletes, everything else replaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainwright.base.objects import Json


def apply_merge_patch(doc: Json, patch: Json) -> Json:
    """Apply a merge patch; parts that the patch does not reach are shared with `doc`.

    Source: RFC 7386, section 2.
    """
    if not isinstance(patch, dict):
        return patch
    result: dict[str, Any] = dict(doc) if isinstance(doc, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply_merge_patch(result.get(key), value)
    return result


def build_merge_patch(before: Json, after: Json) -> Json:
    """The smallest merge patch from `before` to `after`; `{}` when they are equal objects.

    A null inside `after` cannot be expressed by a merge patch and is left out.
    """
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        if key not in before:
            patch[key] = value
        elif not is_same_json(before[key], value):
            patch[key] = build_merge_patch(before[key], value)
    return patch


def is_same_json(left: Json, right: Json) -> bool:
    """Equality of JSON values: numbers by value, but `true` is not 1."""
    if left is right:
        return True
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(is_same_json(value, right[key]) for key, value in left.items())
        )
    if isinstance(left, list):
        return (
            isinstance(right, list)
            and len(left) == len(right)
            and all(map(is_same_json, left, right))
        )
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)
