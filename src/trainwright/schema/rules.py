"""The CEL rules of a schema (`x-kubernetes-validations`), held against objects."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from trainwright.base.errors import FieldError, Reason
from trainwright.schema.cel import RuleError, compile_rule
from trainwright.schema.places import Place, render_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trainwright.base.objects import Json, Object

_STRING_LITERAL = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""")
_OLD_SELF = re.compile(r"\boldSelf\b")
_STEP = re.compile(r"""\.([A-Za-z_][\w-]*)|\['([^']*)'\]|\["([^"]*)"\]|\[(\d+)\]""")
_RESERVED = frozenset({
    "as", "break", "const", "continue", "else", "for", "function", "if", "import", "in", "let",
    "loop", "namespace", "null", "package", "return", "true", "false", "var", "void", "while",
})  # fmt: skip
_ESCAPES = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_LARGEST_CACHE = 8192


class _Absent:
    """Stands for an old value that is not there; None would be a JSON null."""


_ABSENT = _Absent()


@dataclass(frozen=True, slots=True)
class _Rule:
    text: str
    message: str
    message_expression: str
    reason: Reason
    field_path: str
    is_transition: bool
    optional_old_self: bool
    fast: Callable[[Json, Json], bool] | None


@dataclass(slots=True)
class _Node:
    """What of a schema matters to rules: own rules, and the parts below that have some."""

    schema: Mapping[str, Any]
    """Kept so that the id of the schema, by which nodes are found, stays its own."""
    rules: tuple[_Rule, ...] = ()
    properties: dict[str, _Node] = field(default_factory=dict)
    additional: _Node | None = None
    items: _Node | None = None
    keys: tuple[str, ...] | None = None
    """Keys by which list items meet their old selves; None where they do not."""
    converts: bool = False
    """Whether the schema has numbers, which CEL must see as doubles even when they are whole."""


_nodes: dict[int, _Node] = {}


def find_rule_errors(
    schema: Mapping[str, Any], obj: Object, old: Object | None = None
) -> list[FieldError]:
    """Every rule of the schema that the object breaks.

    Args:
        schema: of the whole object.
        obj: valid by its schema: run this only after `find_schema_errors` found nothing.
        old: what it was before an update; rules over `oldSelf` run only where the value at the same
            place existed (list maps meet by key, atomic lists and sets never).

    Source: Kubernetes, CustomResourceDefinition, validation rules. A broken rule of the root has
    the field `<nil>`.
    """
    node = _node_of(schema)
    errors: list[FieldError] = []
    if node is not None:
        _walk(node, obj, _ABSENT if old is None else old, None, errors)
    return errors


def find_rule_compile_errors(schema: Mapping[str, Any], path: str = "") -> list[FieldError]:
    """Every rule of the schema that does not compile; a CRD with one is refused."""
    return list(_find_compile_errors(schema, path))


def _find_compile_errors(schema: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    for index, raw in enumerate(schema.get("x-kubernetes-validations") or ()):
        place = f"{path}.x-kubernetes-validations[{index}]".removeprefix(".")
        rule = _read_rule(raw)
        try:
            compile_rule(rule.text, optional_old_self=rule.optional_old_self)
        except RuleError as error:
            detail = f"compilation failed: {error}"
            yield FieldError(Reason.INVALID, f"{place}.rule", rule.text, detail)
        try:
            if rule.message_expression:
                compile_rule(rule.message_expression, wants="STRING")
        except RuleError as error:
            detail = f"compilation failed: {error}"
            yield FieldError(Reason.INVALID, f"{place}.messageExpression", rule.text, detail)
    for name, part in (schema.get("properties") or {}).items():
        yield from _find_compile_errors(part, f"{path}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from _find_compile_errors(schema[name], f"{path}.{name}")


def _walk(
    node: _Node, value: Json, old: Json, place: Place | None, errors: list[FieldError]
) -> None:
    if value is None:
        return
    for rule in node.rules:
        _run(rule, node, value, old, place, errors)
    if isinstance(value, dict):
        was = old if isinstance(old, dict) else {}
        for name, part in node.properties.items():
            if name in value:
                _walk(part, value[name], was.get(name, _ABSENT), (place, name), errors)
        if node.additional is not None:
            for name, item in value.items():
                _walk(node.additional, item, was.get(name, _ABSENT), (place, name), errors)
    elif isinstance(value, list) and node.items is not None:
        before = _by_keys(old, node.keys)
        for index, item in enumerate(value):
            earlier = before.get(_key_of(item, node.keys), _ABSENT) if node.keys else _ABSENT
            _walk(node.items, item, earlier, (place, index), errors)


def _run(
    rule: _Rule, node: _Node, value: Json, old: Json, place: Place | None, errors: list[FieldError]
) -> None:
    if rule.is_transition and old is _ABSENT and not rule.optional_old_self:
        return
    detail = ""
    if rule.fast is not None:
        if rule.fast(value, old):
            return
    else:
        try:
            program = compile_rule(rule.text, optional_old_self=rule.optional_old_self)
            if program.evaluate(_variables(rule, node, value, old, place)) is True:
                return
        except RuleError as error:
            detail = f"{error} evaluating rule: {rule.message or rule.text}"
    shown = "object" if isinstance(value, dict) else "array" if isinstance(value, list) else value
    errors.append(
        FieldError(
            rule.reason,
            _extend(place, rule.field_path),
            shown,
            detail or _message_of(rule, node, value, old, place),
        )
    )


def _message_of(rule: _Rule, node: _Node, value: Json, old: Json, place: Place | None) -> str:
    if rule.message_expression:
        try:
            program = compile_rule(rule.message_expression, wants="STRING")
            text = program.evaluate(_variables(rule, node, value, old, place))
            if isinstance(text, str) and text.strip() and "\n" not in text:
                return text.strip()
        except RuleError:
            return rule.message or f"failed rule: {rule.text}"
    return rule.message or f"failed rule: {rule.text}"


def _variables(
    rule: _Rule, node: _Node, value: Json, old: Json, place: Place | None
) -> dict[str, Json]:
    before = None if old is _ABSENT else old
    if place is None:
        value, before = _root_view(value), _root_view(before)
    if node.converts or "__" in rule.text:
        value, before = _convert(node.schema, value), _convert(node.schema, before)
    return {"self": value, "oldSelf": before, "oldSelfPresent": old is not _ABSENT}


def _root_view(obj: Json) -> Json:
    """The object as root rules see it: of the metadata only the names."""
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
        return obj
    metadata = obj["metadata"]
    shown = {name: metadata[name] for name in ("name", "generateName") if name in metadata}
    return {**obj, "metadata": shown}


def _convert(schema: Mapping[str, Any], value: Json) -> Json:
    """The value as CEL should see it.

    Differs: a `date-time` stays text, since the library takes no times inside maps; rules write
    `timestamp(self.at)`, which Kubernetes understands as well.
    """
    if isinstance(value, dict):
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        spare = additional if isinstance(additional, dict) else {}
        return {
            _escape(name) if name in properties else name: _convert(
                properties.get(name, spare), item
            )
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_convert(schema.get("items") or {}, item) for item in value]
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def _escape(name: str) -> str:
    if name in _RESERVED:
        return f"__{name}__"
    for plain, escaped in _ESCAPES:
        name = name.replace(plain, escaped)
    return name


def _has_numbers(schema: Mapping[str, Any]) -> bool:
    if schema.get("type") == "number":
        return True
    parts = [part for name, part in (schema.get("properties") or {}).items() if name != "metadata"]
    parts += [schema.get(name) for name in ("items", "additionalProperties")]
    return any(_has_numbers(part) for part in parts if isinstance(part, dict))


def _node_of(schema: Mapping[str, Any]) -> _Node | None:
    """The node of a schema, built once; None when it holds no rule at all."""
    key = id(schema)
    node = _nodes.get(key)
    if node is None or node.schema is not schema:
        if len(_nodes) > _LARGEST_CACHE:
            _nodes.clear()
        node = _nodes[key] = _build_node(schema)
    return node if _has_rules(node) else None


def _build_node(schema: Mapping[str, Any]) -> _Node:
    node = _Node(schema)
    node.rules = tuple(_read_rule(raw) for raw in schema.get("x-kubernetes-validations") or ())
    for name, part in (schema.get("properties") or {}).items():
        below = _build_node(part)
        if _has_rules(below):
            node.properties[name] = below
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            below = _build_node(schema[name])
            if _has_rules(below) and name == "items":
                node.items = below
            elif _has_rules(below):
                node.additional = below
    if schema.get("x-kubernetes-list-type") == "map":
        node.keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    node.converts = bool(node.rules) and _has_numbers(schema)
    return node


def _has_rules(node: _Node) -> bool:
    return bool(node.rules or node.properties or node.additional or node.items)


def _read_rule(raw: Mapping[str, Any]) -> _Rule:
    text = str(raw.get("rule", "")).strip()
    optional = bool(raw.get("optionalOldSelf"))
    reason = raw.get("reason") or "FieldValueInvalid"
    return _Rule(
        text=text,
        message=str(raw.get("message") or "").strip(),
        message_expression=str(raw.get("messageExpression") or "").strip(),
        reason=Reason(reason) if reason in set(Reason) else Reason.INVALID,
        field_path=str(raw.get("fieldPath") or ""),
        is_transition=_OLD_SELF.search(_STRING_LITERAL.sub("''", text)) is not None,
        optional_old_self=optional,
        fast=None if optional else _find_fast_path(text),
    )


def _find_fast_path(text: str) -> Callable[[Json, Json], bool] | None:
    """A plain function for the forms that most rules have; it must agree with CEL."""
    if text in ("self == oldSelf", "oldSelf == self"):
        return _equals
    bound = re.fullmatch(r"self (>=|<=) (-?\d+)", text)
    if bound is not None:
        limit = int(bound[2])
        if bound[1] == ">=":
            return lambda value, _: isinstance(value, (int, float)) and value >= limit
        return lambda value, _: isinstance(value, (int, float)) and value <= limit
    return None


def _equals(value: Json, old: Json) -> bool:
    return bool(value == old)


def _by_keys(old: Json, keys: tuple[str, ...] | None) -> dict[object, Json]:
    if not isinstance(old, list) or keys is None:
        return {}
    return {_key_of(item, keys): item for item in old}


def _key_of(item: Json, keys: tuple[str, ...] | None) -> object:
    if not isinstance(item, dict) or keys is None:
        return None
    return tuple(msgspec.json.encode(item.get(key)) for key in keys)


def _extend(place: Place | None, field_path: str) -> str:
    for match in _STEP.finditer(field_path):
        step: str | int = match[1] or match[2] or match[3] or ""
        place = (place, int(match[4]) if match[4] is not None else step)
    return render_place(place)
