"""Objects walked together with their schema: which fields they set, merging, comparing, removing.

Source: the semantics of structured-merge-diff, on which server-side apply rests.
Differs: removing the last key of an object that stays leaves `{}`, never null, so that an apply of
an empty map cannot end in an object that its own schema refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainwright.merge.fieldset import SELF, Path, Tree, is_member, render_path
from trainwright.merge.merge_patch import is_same_json
from trainwright.merge.shape import (
    KEYLESS,
    DuplicateElement,
    KeyMissing,
    declares,
    element_names,
    encode_json,
    field_schema,
    is_granular,
    item_schema,
)

if TYPE_CHECKING:
    from trainwright.base.objects import Json
    from trainwright.merge.shape import Schema

_ABSENT: Any = object()


def build_field_tree(
    value: Json, schema: Schema | None, path: Path = (), *, strict: bool = False
) -> Tree:
    """The fields that an applied value sets, as one level of a field set.

    Args:
        value: a granular object or list; anything else sets nothing below itself.
        schema: its schema.
        path: where the value stands, for messages.
        strict: refuse duplicate and keyless elements instead of taking them as they are.

    Raises:
        DuplicateElement, KeyMissing: only when `strict`.
    """
    tree: Tree = {}
    if isinstance(value, dict):
        for key, child in value.items():
            name = "f:" + key
            if not isinstance(child, dict | list):
                tree[name] = {}
                continue
            child_schema = field_schema(schema, key)
            if not is_granular(child_schema, child):
                tree[name] = {}
                continue
            below = build_field_tree(child, child_schema, (*path, name), strict=strict)
            if (isinstance(child, dict) and not child) or not declares(schema, key):
                tree[name] = {SELF: {}, **below} if below else {}
            elif below:
                tree[name] = below
    elif isinstance(value, list) and schema is not None:
        names, elements = element_names(schema, value), item_schema(schema)
        for name, item in zip(names, value, strict=True):
            if strict:
                _check_element(name, tree, path, schema)
            if name in tree:
                tree[name] = {}
            elif is_granular(elements, item):
                below = build_field_tree(item, elements, (*path, name), strict=strict)
                tree[name] = {SELF: {}, **below} if below else {}
            else:
                tree[name] = {}
    return tree


def _check_element(name: str, seen: Tree, path: Path, schema: Schema) -> None:
    if name == KEYLESS:
        raise KeyMissing(render_path(path), schema.get("x-kubernetes-list-map-keys", ()))
    if name in seen:
        raise DuplicateElement(render_path((*path, name)))


def merge_values(live: Json, config: Json, schema: Schema | None) -> Json:
    """Lay an applied value over the live one; `live` itself when that changes nothing."""
    if _is_equal(live, config):
        return live
    if live and is_granular(schema, live):
        if config is None:
            return live
        if isinstance(live, dict) and isinstance(config, dict):
            return _merge_maps(live, config, schema)
        if isinstance(live, list) and isinstance(config, list) and schema is not None:
            return _merge_lists(live, config, schema)
    return live if is_same_json(live, config) else config


def _is_equal(left: Json, right: Json) -> bool:
    """Quick equality, which may miss equal values but never takes `true` for 1."""
    if left != right:
        return False
    return type(left) is type(right) is str or encode_json(left) == encode_json(right)


def _merge_maps(
    live: dict[str, Any], config: dict[str, Any], schema: Schema | None
) -> dict[str, Any]:
    result: dict[str, Any] | None = None
    for key, value in config.items():
        old = live.get(key, _ABSENT)
        new = value if old is _ABSENT else merge_values(old, value, field_schema(schema, key))
        if new is not old:
            if result is None:
                result = dict(live)
            result[key] = new
    return live if result is None else result


def _merge_lists(live: list[Json], config: list[Json], schema: Schema) -> list[Json]:
    """Elements of both lists: applied ones in their order, the others where they stood."""
    live_names, config_names = element_names(schema, live), element_names(schema, config)
    elements = item_schema(schema)
    applied = dict(zip(config_names, config, strict=True))
    present = _index(live_names, live)
    merged = {
        name: item if present.get(name, _ABSENT) is _ABSENT
        else merge_values(present[name], item, elements)
        for name, item in applied.items()
    }  # fmt: skip
    result = _interleave(live_names, live, list(applied), merged)
    same = len(result) == len(live) and all(a is b for a, b in zip(result, live, strict=True))
    return live if same else result


def _index(names: list[str], items: list[Json]) -> dict[str, Json]:
    """Items by name; `_ABSENT` where several share one name."""
    index: dict[str, Json] = {}
    for name, item in zip(names, items, strict=True):
        index[name] = _ABSENT if name in index else item
    return index


def _interleave(
    live_names: list[str], live: list[Json], order: list[str], merged: dict[str, Json]
) -> list[Json]:
    """Merge the two orders.

    At each step an element that only `live` has goes first; a shared one waits for its turn in the
    applied order, and applied elements that are new go before the shared one that follows them.
    """
    known = set(live_names)
    shared = [name for name in order if name in known]
    result: list[Json] = []
    at = done = next_shared = 0
    while at < len(live_names) or done < len(order):
        if at < len(live_names):
            name = live_names[at]
            if name not in merged:
                result.append(live[at])
                at += 1
                continue
            wanted = shared[next_shared] if next_shared < len(shared) else None
            if done == len(order) or (wanted is not None and wanted != name):
                at += 1
                continue
            if wanted is None or order[done] == name:
                at += 1
        applied = order[done]
        result.append(merged[applied])
        done += 1
        if next_shared < len(shared) and shared[next_shared] == applied:
            next_shared += 1
    return result


def compare_values(before: Json, after: Json, schema: Schema | None) -> tuple[Tree, Tree]:
    """What differs between two granular values: (added or modified, removed), as field-set levels."""
    taken: Tree = {}
    gone: Tree = {}
    if before is after:
        return taken, gone
    if isinstance(before, dict) and isinstance(after, dict):
        for key, new in after.items():
            old = before.get(key, _ABSENT)
            if old is not new:
                _compare_child("f:" + key, (old, new), field_schema(schema, key), (taken, gone))
        for key, old in before.items():
            if key not in after:
                gone["f:" + key] = _whole(old, field_schema(schema, key))
    elif isinstance(before, list) and isinstance(after, list) and schema is not None:
        elements = item_schema(schema)
        olds, news = _grouped(schema, before), _grouped(schema, after)
        for name, items in news.items():
            was = olds.get(name, [_ABSENT])
            if len(items) > 1 or len(was) > 1:
                if not is_same_json(was, items):
                    taken[name] = {}
            else:
                _compare_child(name, (was[0], items[0]), elements, (taken, gone))
        for name, items in olds.items():
            if name not in news:
                gone[name] = _whole(items[0], elements) if len(items) == 1 else {}
    return taken, gone


def _grouped(schema: Schema, items: list[Json]) -> dict[str, list[Json]]:
    groups: dict[str, list[Json]] = {}
    for name, item in zip(element_names(schema, items), items, strict=True):
        groups.setdefault(name, []).append(item)
    return groups


def _compare_child(
    name: str, pair: tuple[Json, Json], schema: Schema | None, into: tuple[Tree, Tree]
) -> None:
    (old, new), (taken, gone) = pair, into
    if old is _ABSENT:
        taken[name] = _whole(new, schema)
        return
    if type(old) is type(new) and _is_equal(old, new):
        return
    was, now = is_granular(schema, old), is_granular(schema, new)
    if was and now and type(old) is type(new):
        more, less = compare_values(old, new, schema)
        if more:
            taken[name] = more
        if less:
            gone[name] = less
        return
    if not was and not now:
        if not is_same_json(old, new):
            taken[name] = {}
        return
    if was and (below := _below(old, schema)):
        gone[name] = below
    below = _below(new, schema) if now else {}
    if old is not None and new is not None:
        below = {SELF: {}, **below} if below else {}
        taken[name] = below
    elif below or not (old or new):
        taken[name] = below


def _below(value: Json, schema: Schema | None) -> Tree:
    """Every path below a granular value, inner ones too."""
    if isinstance(value, dict):
        return {"f:" + key: _whole(v, field_schema(schema, key)) for key, v in value.items()}
    elements = item_schema(schema)
    return {
        name: _whole(items[0], elements) if len(items) == 1 else {}
        for name, items in _grouped(schema or {}, value).items()
    }


def _whole(value: Json, schema: Schema | None) -> Tree:
    """A value that came or went as a whole: itself and every path below."""
    below = _below(value, schema) if is_granular(schema, value) else {}
    return {SELF: {}, **below} if below else {}


def remove_fields(value: Json, tree: Tree, schema: Schema | None) -> Json:
    """The value without the paths of a field-set level; the same object when none is there."""
    if not tree or not is_granular(schema, value):
        return value
    if isinstance(value, dict):
        kept = {}
        for key, child in value.items():
            below = tree.get("f:" + key)
            if below is None:
                kept[key] = child
            elif not is_member(below):
                kept[key] = remove_fields(child, below, field_schema(schema, key))
        same = len(kept) == len(value) and all(kept[key] is value[key] for key in kept)
        return value if same else kept
    elements = item_schema(schema)
    items = []
    for name, item in zip(element_names(schema or {}, value), value, strict=True):
        below = tree.get(name)
        if below is None:
            items.append(item)
        elif not is_member(below):
            items.append(remove_fields(item, below, elements))
    same = len(items) == len(value) and all(a is b for a, b in zip(items, value, strict=True))
    return value if same else items


def with_named_fields(tree: Tree, schema: Schema | None) -> Tree:
    """The level with every declared field that has something below it made a member itself."""
    result: Tree = {}
    for key, below in tree.items():
        if key == SELF or not below:
            result[key] = below
            continue
        if key.startswith("f:"):
            name = key[2:]
            inner = with_named_fields(below, field_schema(schema, name))
            named = declares(schema, name)
        else:
            inner, named = with_named_fields(below, item_schema(schema)), False
        result[key] = {SELF: {}, **inner} if named else inner
    return result
