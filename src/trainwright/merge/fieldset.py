"""Sets of field paths, as `managedFields[].fieldsV1` writes them.

A set is a tree of path elements: `f:<name>` a field, `k:{json}` an element of a keyed list,
`v:json` an element of a set, `i:<n>` an index. An element belongs to the set when it has no
children, or when `.` stands among them. The tree is held as that very JSON, so reading and writing
an entry costs nothing; trees are shared between sets and never edited.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Tree = dict[str, Any]
"""One level of `fieldsV1`: path element to the level below."""

Path = tuple[str, ...]
"""Path elements from the root, each with its prefix."""

SELF = "."


@dataclass(frozen=True, slots=True)
class FieldSet:
    """An immutable set of field paths."""

    tree: Tree = field(default_factory=dict)

    @staticmethod
    def from_fields_v1(fields: Mapping[str, Any] | None) -> FieldSet:
        """The set that a `fieldsV1` value describes.

        Raises:
            ValueError: the value is not of that form.
        """
        if fields is None:
            return FieldSet()
        _check(fields)
        return FieldSet({key: child for key, child in fields.items() if key != SELF})

    @staticmethod
    def from_paths(*paths: Path) -> FieldSet:
        """The set of exactly these paths."""
        tree: Tree = {}
        for path in paths:
            single: Tree = {}
            for element in reversed(path):
                single = {element: single}
            tree = _union(tree, single)
        return FieldSet(tree)

    def to_fields_v1(self) -> Tree:
        """The `fieldsV1` JSON, elements sorted as the API server sorts them."""
        return _sorted(self.tree)

    def union(self, other: FieldSet) -> FieldSet:
        """Paths of either set."""
        return FieldSet(_union(self.tree, other.tree))

    def difference(self, other: FieldSet) -> FieldSet:
        """Paths of this set that are not in the other."""
        return FieldSet(_difference(self.tree, other.tree)) if other.tree else self

    def intersection(self, other: FieldSet) -> FieldSet:
        """Paths in both sets."""
        return FieldSet(_intersection(self.tree, other.tree))

    def is_subset(self, other: FieldSet) -> bool:
        """Whether every path is in the other set."""
        return self.tree == other.tree or not _difference(self.tree, other.tree)

    def is_empty(self) -> bool:
        """Whether there is no path."""
        return not self.tree

    def has(self, path: Path) -> bool:
        """Whether the path itself, not merely something below it, is in the set."""
        tree = self.tree
        for element in path:
            if element not in tree:
                return False
            tree = tree[element]
        return bool(path) and is_member(tree)

    def leaves(self) -> Iterator[Path]:
        """Every path of the set, sorted, parents before children."""
        yield from _paths(self.tree, ())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FieldSet):
            return NotImplemented
        return self.tree == other.tree or _is_equal(self.tree, other.tree)

    def __hash__(self) -> int:
        return hash(tuple(self.leaves()))


def is_member(tree: Tree) -> bool:
    """Whether the path element above this level belongs to the set itself."""
    return not tree or SELF in tree


def render_path(path: Path) -> str:
    """A path as conflict messages write it: `.spec.containers[name="a"].image`."""
    return "".join(_render_element(element) for element in path)


def _render_element(element: str) -> str:
    kind, _, text = element.partition(":")
    if kind == "f":
        return f".{text}"
    if kind == "v":
        return f"[={text}]"
    if kind == "k":
        keys = msgspec.json.decode(text)
        inner = (f"{name}={msgspec.json.encode(value).decode()}" for name, value in keys.items())
        return f"[{','.join(inner)}]"
    return f"[{text}]"


def _check(fields: Any) -> None:
    if not isinstance(fields, dict):
        raise ValueError(f"fieldsV1 must be an object, not {type(fields).__name__}")
    for key, child in fields.items():
        if key != SELF and key[:2] not in ("f:", "k:", "v:", "i:"):
            raise ValueError(f'"{key}" is not a path element of fieldsV1')
        _check(child)


def _rank(element: str) -> tuple[str, str]:
    kind = element[:2]
    return ("z" if kind == "i:" else kind, element)


def _sorted(tree: Tree) -> Tree:
    if set(tree) == {SELF}:
        return {}
    return {key: _sorted(tree[key]) if tree[key] else {} for key in sorted(tree, key=_rank)}


def _paths(tree: Tree, above: Path) -> Iterator[Path]:
    for key in sorted(tree, key=_rank):
        if key == SELF:
            continue
        path = (*above, key)
        if is_member(tree[key]):
            yield path
        yield from _paths(tree[key], path)


def _is_equal(left: Tree, right: Tree) -> bool:
    if left is right:
        return True
    if is_member(left) != is_member(right):
        return False
    children = left.keys() - {SELF}
    return children == right.keys() - {SELF} and all(_is_equal(left[k], right[k]) for k in children)


def _level(children: Tree, member: bool) -> Tree | None:
    """One level in canonical form; None when nothing is left."""
    if not member:
        return children or None
    return {SELF: {}, **children} if children else {}


def _union(left: Tree, right: Tree) -> Tree:
    if left is right:
        return left
    result = dict(left)
    for key, child in right.items():
        mine = result.get(key)
        if mine is None or key == SELF:
            result[key] = child
        elif mine is not child:
            merged = _union(mine, child)
            member = is_member(mine) or is_member(child)
            result[key] = {SELF: {}, **merged} if member and merged else merged
    return result


def _difference(left: Tree, right: Tree) -> Tree:
    result: Tree = {}
    for key, child in left.items():
        if key == SELF:
            continue
        other = right.get(key)
        if other is None:
            result[key] = child
        elif other is not child:
            kept = _level(_difference(child, other), is_member(child) and not is_member(other))
            if kept is not None:
                result[key] = kept
    return result


def _intersection(left: Tree, right: Tree) -> Tree:
    if left is right:
        return left
    result: Tree = {}
    for key, child in left.items():
        other = right.get(key)
        if other is None or key == SELF:
            continue
        kept = _level(_intersection(child, other), is_member(child) and is_member(other))
        if kept is not None:
            result[key] = kept
    return result
