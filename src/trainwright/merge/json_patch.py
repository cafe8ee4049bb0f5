"""JSON patch (RFC 6902) with the limits and answers of the Kubernetes API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.merge.merge_patch import is_same_json

if TYPE_CHECKING:
    from trainwright.base.objects import Json

MAX_OPERATIONS = 10_000
"""More operations in one patch are refused with 413."""


APPEND = "-"
"""The list index behind the last element."""


class PatchError(ValueError):
    """A patch cannot be read or applied; `status` is the HTTP code that fits."""

    def __init__(self, message: str, *, status: int = 422) -> None:
        super().__init__(message)
        self.status = status


def apply_json_patch(doc: Json, ops: Json) -> Json:
    """Apply the operations in order; the input is never edited and untouched parts are shared.

    Raises:
        PatchError: 400 for what is no patch, 413 for too many operations, 422 for a path that is
            not there or a `test` that fails. Nothing is half applied.
    """
    if not isinstance(ops, list):
        raise PatchError("a JSON patch must be a list of operations", status=400)
    if len(ops) > MAX_OPERATIONS:
        raise PatchError(
            f"the allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(ops)}",
            status=413,
        )
    for position, operation in enumerate(ops):
        try:
            doc = _apply_one(doc, operation)
        except PatchError as error:
            raise PatchError(f"operation {position}: {error}", status=error.status) from None
    return doc


def _apply_one(doc: Json, operation: Json) -> Json:
    if not isinstance(operation, dict):
        raise PatchError("must be an object", status=400)
    name, path = operation.get("op"), _parse_pointer(operation, "path")
    match name:
        case "add":
            return _add(doc, path, _value_of(operation))
        case "replace":
            return _replace(doc, path, _value_of(operation))
        case "remove":
            return _remove(doc, path)[0]
        case "move":
            source = _parse_pointer(operation, "from")
            if path[: len(source)] == source and path != source:
                raise PatchError(f'cannot move "{operation["from"]}" into itself')
            rest, moved = _remove(doc, source)
            return _add(rest, path, moved)
        case "copy":
            return _add(doc, path, _find(doc, _parse_pointer(operation, "from")))
        case "test":
            _test(doc, path, operation)
            return doc
    raise PatchError(f'unknown op "{name}"', status=400)


def _value_of(operation: dict[str, Any]) -> Json:
    if "value" not in operation:
        raise PatchError(f'op "{operation["op"]}" needs a value', status=400)
    return operation["value"]


def _parse_pointer(operation: dict[str, Any], key: str) -> tuple[str, ...]:
    pointer = operation.get(key)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise PatchError(f'"{key}" must be a JSON pointer such as /spec/suspend', status=400)
    return tuple(p.replace("~1", "/").replace("~0", "~") for p in pointer.split("/")[1:])


def _test(doc: Json, path: tuple[str, ...], operation: dict[str, Any]) -> None:
    wanted = operation.get("value")
    try:
        seen = _find(doc, path)
    except PatchError:
        if wanted is None:
            return
        raise
    if not is_same_json(seen, wanted):
        raise PatchError(f"testing value {operation['path']} failed")


def _index(items: list[Json], token: str, *, end: int) -> int:
    digits = token.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or (len(digits) > 1 and digits[0] == "0"):
        raise PatchError(f'"{token}" is not a list index')
    index = int(token)
    if index < 0:
        index += end
    if not 0 <= index < end:
        raise PatchError(f"index {token} is outside a list of {len(items)}")
    return index


def _child(parent: Json, token: str) -> Json:
    if isinstance(parent, dict) and token in parent:
        return parent[token]
    if isinstance(parent, list):
        return parent[_index(parent, token, end=len(parent))]
    raise PatchError(f'there is no "{token}"')


def _find(doc: Json, path: tuple[str, ...]) -> Json:
    for token in path:
        doc = _child(doc, token)
    return doc


def _with_child(parent: Json, token: str, value: Json) -> Json:
    if isinstance(parent, dict):
        return {**parent, token: value}
    copy = list(parent)
    copy[_index(copy, token, end=len(copy))] = value
    return copy


def _add(doc: Json, path: tuple[str, ...], value: Json) -> Json:
    if not path:
        return value
    token, rest = path[0], path[1:]
    if rest:
        return _with_child(doc, token, _add(_child(doc, token), rest, value))
    if isinstance(doc, dict):
        return {**doc, token: value}
    if isinstance(doc, list):
        at = len(doc) if token == APPEND else _index(doc, token, end=len(doc) + 1)
        return [*doc[:at], value, *doc[at:]]
    raise PatchError(f'cannot add "{token}" to a value that is neither object nor list')


def _replace(doc: Json, path: tuple[str, ...], value: Json) -> Json:
    if not path:
        return value
    child = _child(doc, path[0])
    return _with_child(doc, path[0], _replace(child, path[1:], value) if path[1:] else value)


def _remove(doc: Json, path: tuple[str, ...]) -> tuple[Json, Json]:
    """The document without the value at `path`, and that value."""
    if not path:
        raise PatchError("cannot remove the whole document")
    token, child = path[0], _child(doc, path[0])
    if path[1:]:
        rest, removed = _remove(child, path[1:])
        return _with_child(doc, token, rest), removed
    if isinstance(doc, dict):
        return {key: value for key, value in doc.items() if key != token}, child
    at = _index(doc, token, end=len(doc))
    return [*doc[:at], *doc[at + 1 :]], child
