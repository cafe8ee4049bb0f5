"""Checking of objects against a structural schema, with the API server's reasons and places."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from trainwright.base.errors import FieldError, Reason
from trainwright.base.times import parse_time
from trainwright.merge.quantity import is_quantity
from trainwright.schema.patterns import compile_pattern
from trainwright.schema.places import Place, render_place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trainwright.base.objects import Json, Object

_INTEGER_BOUNDS = {"int32": 2**31, "int64": 2**63}
_DURATION = re.compile(r"[-+]?(0|(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+")
_BYTES = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_SCALARS = (str, int, float, bool)


def find_schema_errors(schema: Mapping[str, Any], obj: Object) -> list[FieldError]:
    """Everything in the object that its schema forbids, in document order.

    Source: Kubernetes, CustomResourceDefinition validation: types, required, enum, pattern, bounds,
    lengths, formats, and keys of lists that are sets or maps.
    """
    errors: list[FieldError] = []
    _check(schema, obj, None, errors)
    return errors


def _check(
    schema: Mapping[str, Any], value: Json, place: Place | None, errors: list[FieldError]
) -> None:
    if value is None:
        if not schema.get("nullable") and schema.get("type"):
            errors.append(_type_error(schema["type"], value, place))
        return
    if schema.get("x-kubernetes-int-or-string"):
        if not isinstance(value, (int, str)) or isinstance(value, bool):
            errors.append(_type_error("integer or string", value, place))
            return
    else:
        wanted = schema.get("type")
        if wanted is not None and not _TYPES[wanted](value):
            errors.append(_type_error(wanted, value, place))
            return
    if isinstance(value, dict):
        _check_object(schema, value, place, errors)
    elif isinstance(value, list):
        _check_list(schema, value, place, errors)
    elif isinstance(value, str):
        _check_text(schema, value, place, errors)
    elif not isinstance(value, bool):
        _check_number(schema, value, place, errors)
    if "enum" in schema and value not in schema["enum"]:
        choices = ", ".join(_quote(choice) for choice in schema["enum"])
        errors.append(_error(Reason.NOT_SUPPORTED, place, value, f"supported values: {choices}"))
    if not _COMBINERS.isdisjoint(schema):
        _check_combined(schema, value, place, errors)


def _check_object(
    schema: Mapping[str, Any], value: Object, place: Place | None, errors: list[FieldError]
) -> None:
    errors.extend(
        FieldError(Reason.REQUIRED, render_place((place, name)))
        for name in schema.get("required", ())
        if name not in value
    )
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    for name, item in value.items():
        part = properties.get(name)
        if part is None and isinstance(additional, dict):
            part = additional
        if part is not None:
            _check(part, item, (place, name), errors)
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    if least is not None and len(value) < least:
        errors.append(
            _error(Reason.INVALID, place, value, f"should have at least {least} properties")
        )
    if most is not None and len(value) > most:
        errors.append(_error(Reason.TOO_MANY, place, len(value), f"must have at most {most} items"))


def _check_list(
    schema: Mapping[str, Any], value: list[Json], place: Place | None, errors: list[FieldError]
) -> None:
    least, most = schema.get("minItems"), schema.get("maxItems")
    if least is not None and len(value) < least:
        errors.append(_error(Reason.INVALID, place, value, f"should have at least {least} items"))
    if most is not None and len(value) > most:
        errors.append(_error(Reason.TOO_MANY, place, len(value), f"must have at most {most} items"))
        return
    items = schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            _check(items, item, (place, index), errors)
    list_type = schema.get("x-kubernetes-list-type")
    if list_type == "map":
        _check_keys(schema.get("x-kubernetes-list-map-keys") or (), value, place, errors)
    elif list_type == "set" or schema.get("uniqueItems"):
        _check_set(value, place, errors)


def _check_keys(
    names: Sequence[str], value: list[Json], place: Place | None, errors: list[FieldError]
) -> None:
    seen = set()
    for index, item in enumerate(value):
        if not isinstance(item, dict):
            continue
        key = tuple(_hashable(item.get(name)) for name in names)
        if key in seen:
            shown = {name: item[name] for name in names if name in item}
            errors.append(_error(Reason.DUPLICATE, (place, index), shown, ""))
        seen.add(key)


def _check_set(value: list[Json], place: Place | None, errors: list[FieldError]) -> None:
    seen = set()
    for index, item in enumerate(value):
        key = _hashable(item)
        if key in seen:
            errors.append(_error(Reason.DUPLICATE, (place, index), item, ""))
        seen.add(key)


def _check_text(
    schema: Mapping[str, Any], value: str, place: Place | None, errors: list[FieldError]
) -> None:
    most, least = schema.get("maxLength"), schema.get("minLength")
    if most is not None and len(value) > most:
        detail = f"may not be more than {most} bytes"
        errors.append(_error(Reason.TOO_LONG, place, value, detail))
    if least is not None and len(value) < least:
        detail = f"should be at least {least} chars long"
        errors.append(_error(Reason.INVALID, place, value, detail))
    pattern = schema.get("pattern")
    if pattern is not None and not compile_pattern(pattern).search(value):
        errors.append(_error(Reason.INVALID, place, value, f"should match '{pattern}'"))
    check = _FORMATS.get(schema.get("format", ""))
    if check is not None and not check(value):
        detail = f"must be of type {schema['format']}: {_quote(value)}"
        errors.append(_error(Reason.INVALID, place, value, detail))


def _check_number(
    schema: Mapping[str, Any], value: float, place: Place | None, errors: list[FieldError]
) -> None:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and (value < least or (value == least and schema.get("exclusiveMinimum"))):
        bound = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        errors.append(_error(Reason.INVALID, place, value, f"should be {bound} {least}"))
    if most is not None and (value > most or (value == most and schema.get("exclusiveMaximum"))):
        bound = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        errors.append(_error(Reason.INVALID, place, value, f"should be {bound} {most}"))
    factor = schema.get("multipleOf")
    if factor and value % factor:
        errors.append(_error(Reason.INVALID, place, value, f"should be a multiple of {factor}"))
    limit = _INTEGER_BOUNDS.get(schema.get("format", ""))
    if limit is not None and not -limit <= value < limit:
        detail = f"should fit in {schema['format']}"
        errors.append(_error(Reason.INVALID, place, value, detail))


_COMBINERS = frozenset({"allOf", "anyOf", "oneOf", "not"})


def _check_combined(
    schema: Mapping[str, Any], value: Json, place: Place | None, errors: list[FieldError]
) -> None:
    for part in schema.get("allOf", ()):
        _check(part, value, place, errors)
    if "anyOf" in schema and not any(_holds(part, value) for part in schema["anyOf"]):
        detail = "must validate at least one schema (anyOf)"
        errors.append(_error(Reason.INVALID, place, value, detail))
    if "oneOf" in schema and sum(_holds(part, value) for part in schema["oneOf"]) != 1:
        detail = "must validate one and only one schema (oneOf)"
        errors.append(_error(Reason.INVALID, place, value, detail))
    if "not" in schema and _holds(schema["not"], value):
        detail = "must not validate the schema (not)"
        errors.append(_error(Reason.INVALID, place, value, detail))


def _holds(schema: Mapping[str, Any], value: Json) -> bool:
    found: list[FieldError] = []
    _check(schema, value, None, found)
    return not found


def _is_integer(value: Json) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Json], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "number": _is_number,
}


def _is_time(value: str) -> bool:
    try:
        parse_time(value)
    except ValueError:
        return False
    return "T" in value or "t" in value


_FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date-time": _is_time,
    "duration": lambda value: _DURATION.fullmatch(value) is not None,
    "byte": lambda value: _BYTES.fullmatch(value) is not None,
    "quantity": is_quantity,
}


def _type_error(wanted: str, value: Json, place: Place | None) -> FieldError:
    found = _name_type(value)
    detail = f'must be of type {wanted}: "{found}"'
    return _error(Reason.TYPE_INVALID, place, found, detail)


def _name_type(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", dict: "object", list: "array"}
    return names.get(type(value), type(value).__name__)


def _error(reason: Reason, place: Place | None, value: Json, detail: str) -> FieldError:
    return FieldError(reason, render_place(place), value, detail)


def _hashable(value: Json) -> object:
    if isinstance(value, bool):
        return ("boolean", value)
    if value is None or isinstance(value, _SCALARS):
        return value
    return msgspec.json.encode(value, order="sorted")


def _quote(value: Json) -> str:
    return msgspec.json.encode(value).decode()
