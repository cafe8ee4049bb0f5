"""Kubernetes strategic merge patch, driven by the patch strategy and merge key of each list.

A schema is a structural OpenAPI schema as JSON; lists that merge carry `x-kubernetes-patch-strategy:
merge` and, for lists of objects, `x-kubernetes-patch-merge-key`. Without them maps merge and lists
are replaced.

Source: the API server's strategic merge patch; element order as in the runtime patches of Trainer.
Differs: `$patch: merge` is accepted and means the default; nulls and directives of the patch never
reach the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.merge.json_patch import PatchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainwright.base.objects import Json, Object

    Schema = Mapping[str, Any]

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM_LIST = "$deleteFromPrimitiveList/"
SET_ORDER = "$setElementOrder/"

_DROP: Any = object()


def apply_strategic_patch(doc: Object, patch: Object, schema: Schema | None) -> Object:
    """Apply a strategic merge patch.

    Args:
        doc: the object as it is.
        patch: the patch, with or without directives.
        schema: structural schema of `doc`; None merges maps and replaces lists.

    Returns:
        A new object that shares untouched parts with `doc`.

    Raises:
        PatchError: 400 when the patch is malformed, such as a list element without its merge key.
    """
    if not isinstance(patch, dict):
        raise PatchError("a strategic merge patch must be an object", status=400)
    return _merge_map(doc, patch, schema)


def _merge_map(original: Object, patch: Object, schema: Schema | None) -> Object:
    directive = patch.get(DIRECTIVE)
    if directive == "delete":
        return {}
    if directive == "replace":
        return _clean_map(patch)
    if directive not in (None, "merge"):
        raise PatchError(f'unknown $patch directive "{directive}"', status=400)
    result = _retain_keys(original, patch)
    merged_lists = _merge_ordered_lists(result, patch, schema)
    for key, value in patch.items():
        if key in merged_lists or key in (DIRECTIVE, RETAIN_KEYS) or key.startswith(SET_ORDER):
            continue
        if key.startswith(DELETE_FROM_LIST):
            _delete_from_list(result, key.removeprefix(DELETE_FROM_LIST), value)
        elif value is None:
            result.pop(key, None)
        else:
            merged = _merge_value(result.get(key), value, _field_schema(schema, key))
            if merged is not _DROP:
                result[key] = merged
    return result


def _field_schema(schema: Schema | None, key: str) -> Schema | None:
    if schema is None:
        return None
    found = schema.get("properties", {}).get(key) or schema.get("additionalProperties")
    return found if isinstance(found, dict) else None


def _strategies(schema: Schema | None) -> list[str]:
    text = (schema or {}).get("x-kubernetes-patch-strategy", "")
    return [strategy for strategy in text.split(",") if strategy and strategy != "retainKeys"]


def _merge_value(original: Json, value: Json, schema: Schema | None) -> Json:
    """The merged value of one field that the patch sets; `_DROP` when nothing is left of it."""
    if isinstance(original, dict) and isinstance(value, dict):
        if "replace" in _strategies(schema):
            return _clean(value)
        return _merge_map(original, value, schema)
    if isinstance(original, list) and isinstance(value, list):
        return _merge_list(original, value, schema)
    return _clean(value)


def _merge_list(original: list[Json], patch: list[Json], schema: Schema | None) -> list[Json]:
    if "merge" not in _strategies(schema):
        return _clean_list(patch)
    if not any(isinstance(item, dict) for item in (*original, *patch)):
        merged = list(_unique([*original, *patch]))
        return _ordered(merged, patch, original, key=None)
    key = (schema or {}).get("x-kubernetes-patch-merge-key", "")
    if not key:
        raise PatchError("cannot merge a list of objects without a merge key", status=400)
    return _merge_keyed_list(original, patch, key, (schema or {}).get("items"))


def _merge_keyed_list(
    original: list[Json], patch: list[Json], key: str, schema: Schema | None
) -> list[Json]:
    plain: list[Object] = []
    deleted: set[Any] = set()
    replaces = False
    for item in patch:
        directive = item.get(DIRECTIVE) if isinstance(item, dict) else None
        if directive == "replace":
            replaces = True
            continue
        identity = _identity(item, key)
        if directive == "delete":
            deleted.add(identity)
        elif directive in (None, "merge"):
            plain.append(item)
        else:
            raise PatchError(f'unknown $patch directive "{directive}"', status=400)
    if replaces:
        return _clean_list(plain)
    if deleted:
        original = [o for o in original if not _is_keyed(o, key) or _token(o, key) not in deleted]
    merged = list(original)
    # By position, for lists may be as long as a request is large.
    places: dict[Any, int] = {}
    for i, item in enumerate(merged):
        if _is_keyed(item, key):
            places.setdefault(_token(item, key), i)
    for item in plain:
        at = places.setdefault(_identity(item, key), len(merged))
        if at == len(merged):
            merged.append(_clean_map(item))
        else:
            merged[at] = _merge_map(merged[at], item, schema)
    return _ordered(merged, plain, original, key)


def _identity(item: Json, key: str) -> Any:
    if not _is_keyed(item, key):
        raise PatchError(f'every element of this list needs its merge key "{key}"', status=400)
    return _token(item, key)


def _is_keyed(item: Json, key: str) -> bool:
    return isinstance(item, dict) and key in item


def _token(item: Json, key: str | None) -> Any:
    """A hashable stand-in for what makes an element itself."""
    value = item.get(key) if key is not None and isinstance(item, dict) else item
    return (isinstance(value, bool), value) if not isinstance(value, dict | list) else repr(value)


def _unique(items: list[Json]) -> list[Json]:
    return list({_token(item, None): item for item in reversed(items)}.values())[::-1]


def _ordered(
    merged: list[Json], wanted: list[Json], original: list[Json], key: str | None
) -> list[Json]:
    """The element order of a merged list.

    Elements that `wanted` names stand in its order, all others as in `original`. Of the two heads
    the untouched one goes first only where both were in `original` and it stood earlier there.
    """
    rank = _positions(wanted, key)
    earlier = _positions(original, key)
    named = [item for item in merged if _token(item, key) in rank]
    named.sort(key=lambda item: rank[_token(item, key)])
    others = [item for item in merged if _token(item, key) not in rank]
    others.sort(key=lambda item: earlier.get(_token(item, key), len(earlier)))
    result: list[Json] = []
    left = right = 0
    while left < len(others) and right < len(named):
        before = earlier.get(_token(others[left], key))
        after = earlier.get(_token(named[right], key))
        if before is not None and after is not None and before < after:
            result.append(others[left])
            left += 1
        else:
            result.append(named[right])
            right += 1
    return [*result, *others[left:], *named[right:]]


def _positions(items: list[Json], key: str | None) -> dict[Any, int]:
    positions: dict[Any, int] = {}
    for position, item in enumerate(items):
        positions.setdefault(_token(item, key), position)
    return positions


def _merge_ordered_lists(result: Object, patch: Object, schema: Schema | None) -> set[str]:
    """Carry out every `$setElementOrder` directive in `result`; the fields that are done."""
    done: set[str] = set()
    for directive, order in patch.items():
        if not directive.startswith(SET_ORDER):
            continue
        field = directive.removeprefix(SET_ORDER)
        if not isinstance(order, list):
            raise PatchError(f'"{directive}" must be a list', status=400)
        original, change = result.get(field), patch.get(field)
        if not isinstance(original, list) and not isinstance(change, list):
            continue
        field_schema = _field_schema(schema, field)
        key = (field_schema or {}).get("x-kubernetes-patch-merge-key") or None
        if key is not None:
            for item in order:
                _identity(item, key)
        if not isinstance(change, list):
            merged = original or []
        else:
            merged = _merge_value(original, change, field_schema)
        base = original if isinstance(original, list) else []
        result[field] = _ordered(merged, order, base, key)
        if isinstance(change, list):
            done.add(field)
    return done


def _delete_from_list(result: Object, field: str, values: Json) -> None:
    if not isinstance(values, list):
        raise PatchError(f'"{DELETE_FROM_LIST}{field}" must be a list', status=400)
    if isinstance(result.get(field), list):
        gone = {_token(value, None) for value in values}
        result[field] = [item for item in result[field] if _token(item, None) not in gone]


def _retain_keys(original: Object, patch: Object) -> Object:
    """A shallow copy of `original` without the keys that `$retainKeys` does not name."""
    if RETAIN_KEYS not in patch:
        return dict(original)
    names = patch[RETAIN_KEYS]
    if not isinstance(names, list):
        raise PatchError(f'"{RETAIN_KEYS}" must be a list', status=400)
    for key, value in patch.items():
        if value is not None and not key.startswith("$") and key not in names:
            raise PatchError(
                f'"{key}" is set by the patch but not in its {RETAIN_KEYS}', status=400
            )
    return {key: value for key, value in original.items() if key in names}


def _clean(value: Json) -> Json:
    """A value of the patch as it enters the document: without nulls and directives."""
    if isinstance(value, dict):
        return _DROP if value.get(DIRECTIVE) == "delete" else _clean_map(value)
    return _clean_list(value) if isinstance(value, list) else value


def _clean_map(patch: Object) -> Object:
    cleaned = {
        key: _clean(value)
        for key, value in patch.items()
        if value is not None
        and key not in (DIRECTIVE, RETAIN_KEYS)
        and not key.startswith((DELETE_FROM_LIST, SET_ORDER))
    }
    return {key: value for key, value in cleaned.items() if value is not _DROP}


def _clean_list(patch: list[Json]) -> list[Json]:
    kept = (_clean(item) for item in patch if not _is_bare_directive(item))
    return [item for item in kept if item is not _DROP]


def _is_bare_directive(item: Json) -> bool:
    return isinstance(item, dict) and len(item) == 1 and DIRECTIVE in item
