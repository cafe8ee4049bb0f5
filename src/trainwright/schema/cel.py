"""The language of rules: one environment with Kubernetes' functions, and compiled programs.

The library is loaded when the first rule is compiled, so that importing this costs nothing.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from trainwright.merge.quantity import is_quantity, parse_quantity
from trainwright.schema.patterns import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from trainwright.base.objects import Json

_OLD_SELF = re.compile(r"\boldSelf\b")
_OPTIONAL_OLD_SELF = "(oldSelfPresent ? optional.of(oldSelf) : optional.none())"


class RuleError(ValueError):
    """A rule that does not compile, or whose evaluation found no answer."""


class Program:
    """One compiled expression over `self` and `oldSelf`."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def evaluate(self, variables: Mapping[str, Json]) -> Json:
        """The value of the expression.

        Raises:
            RuleError: when evaluation fails, such as on a field that is absent.
        """
        try:
            value = self._compiled.eval(data=variables)
            if value.type().name() == "ERROR":
                raise RuleError(_first_line(str(value.value())))
            return value.plain_value()
        except (RuntimeError, TypeError, ValueError) as error:
            if isinstance(error, RuleError):
                raise
            raise RuleError(_first_line(str(error))) from error


@functools.lru_cache(maxsize=4096)
def compile_rule(text: str, *, optional_old_self: bool = False, wants: str = "BOOL") -> Program:
    """The program of one rule text, compiled once.

    Args:
        text: the expression.
        optional_old_self: whether `oldSelf` is an optional that may be absent.
        wants: name of the type that the expression must have: BOOL, or STRING for messages.

    Raises:
        RuleError: saying why it does not compile.
    """
    source = _OLD_SELF.sub(_OPTIONAL_OLD_SELF, text) if optional_old_self else text
    try:
        compiled = _environment().compile(source)
    except RuntimeError as error:
        raise RuleError(_first_line(str(error))) from error
    found = compiled.return_type().name()
    if found not in (wants, "DYN"):
        raise RuleError(f"must evaluate to {wants.lower()}, not {found.lower()}")
    return Program(compiled)


def _first_line(text: str) -> str:
    return text.partition("\n")[0].removeprefix("INVALID_ARGUMENT: ")


@functools.cache
def _environment() -> Any:
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_bindings, ext_math, ext_optional, ext_strings

    kinds = cel.Type
    return cel.NewEnv(
        variables={"self": kinds.DYN, "oldSelf": kinds.DYN, "oldSelfPresent": kinds.BOOL},
        extensions=[
            ext_strings.ExtStrings(),
            ext_optional.ExtOptional(),
            ext_bindings.ExtBindings(),
            ext_math.ExtMath(),
        ],
        functions=_declare_functions(cel),
    )


def _declare_functions(cel: Any) -> list[Any]:
    """Kubernetes' own functions; a quantity travels as the text of an exact fraction."""
    text, whole, real = cel.Type.STRING, cel.Type.INT, cel.Type.DOUBLE
    truth, items, anything = cel.Type.BOOL, cel.Type.LIST, cel.Type.DYN
    table: dict[str, list[tuple[bool, Sequence[Any], Any, Any]]] = {
        "isQuantity": [(False, [text], truth, is_quantity)],
        "quantity": [(False, [text], text, lambda value: str(parse_quantity(value)))],
        "compareTo": [(True, [text, text], whole, lambda a, b: _sign(_amount(a) - _amount(b)))],
        "isGreaterThan": [(True, [text, text], truth, lambda a, b: _amount(a) > _amount(b))],
        "isLessThan": [(True, [text, text], truth, lambda a, b: _amount(a) < _amount(b))],
        "sign": [(True, [text], whole, lambda value: _sign(_amount(value)))],
        "isInteger": [(True, [text], truth, lambda value: _amount(value).denominator == 1)],
        "asInteger": [(True, [text], whole, lambda value: int(_amount(value)))],
        "asApproximateFloat": [(True, [text], real, lambda value: float(_amount(value)))],
        "add": [(True, [text, text], text, lambda a, b: str(_amount(a) + _amount(b)))],
        "sub": [(True, [text, text], text, lambda a, b: str(_amount(a) - _amount(b)))],
        "find": [(True, [text, text], text, _find)],
        "findAll": [(True, [text, text], items, _find_all)],
        "isSorted": [(True, [items], truth, lambda value: list(value) == sorted(value))],
        "sum": [(True, [items], anything, lambda value: sum(value))],
        "min": [(True, [items], anything, lambda value: min(value))],
        "max": [(True, [items], anything, lambda value: max(value))],
        "isIP": [(False, [text], truth, lambda value: _is_read(ipaddress.ip_address, value))],
        "isCIDR": [(False, [text], truth, lambda value: _is_read(ipaddress.ip_network, value))],
        "isURL": [(False, [text], truth, _is_url)],
    }
    return [
        cel.FunctionDecl(
            name,
            [
                cel.Overload(
                    f"{name}_{number}",
                    return_type=result,
                    parameters=list(parameters),
                    is_member=is_member,
                    impl=impl,
                )
                for number, (is_member, parameters, result, impl) in enumerate(overloads)
            ],
        )
        for name, overloads in table.items()
    ]


def _amount(text: str) -> Fraction:
    from fractions import Fraction

    return Fraction(text)


def _sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)


def _find(text: str, pattern: str) -> str:
    match = compile_pattern(pattern).search(text)
    return match[0] if match else ""


def _find_all(text: str, pattern: str) -> list[str]:
    return [match[0] for match in compile_pattern(pattern).finditer(text)]


def _is_read(reader: Any, text: str) -> bool:
    try:
        reader(text)
    except ValueError:
        return False
    return True


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme and parts.netloc) or text.startswith("/")
