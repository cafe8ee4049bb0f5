"""Kubernetes quantities: exact values of `500m`, `1.5Gi`, `12e6`, and the one text the API shows.

A quantity is text (or a JSON number: some clients send `2.0`). Values are exact fractions, finest
step 1n; anything finer is rounded away from zero, as the API server does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

QuantityText = str | int | float
"""What stands in a manifest for a quantity."""

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

_PATTERN = re.compile(
    r"([+-]?)(\d+(?:\.\d*)?|\.\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?", re.ASCII
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_DESCENDING = tuple(sorted(((e, s) for s, e in _DECIMAL.items()), reverse=True))
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_NANO = 10**9
_MOST = Fraction(2**63 - 1)
_LARGEST_EXPONENT = 64


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact value and the notation in which it was written."""

    value: Fraction
    format: Format = "DecimalSI"

    def __str__(self) -> str:
        return _render(self.value, self.format)


def read_quantity(text: QuantityText) -> Quantity:
    """Parse a quantity and keep its notation.

    Raises:
        ValueError: the text is not a quantity.
    """
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ValueError(f"quantity must be a string or number, not {type(text).__name__}")
    match = _PATTERN.fullmatch(text.strip() if isinstance(text, str) else repr(text))
    if match is None:
        raise ValueError(
            f'"{text}" is not a quantity; write a number with one of the suffixes '
            "n u m k M G T P E Ki Mi Gi Ti Pi Ei, such as 500m or 2Gi"
        )
    sign, digits, suffix = match[1], match[2], match[3] or ""
    factor, notation = _factor_of(suffix)
    value = _bounded(Fraction(digits + "0" if digits.endswith(".") else digits) * factor)
    return Quantity(-value if sign == "-" else value, notation)


def _factor_of(suffix: str) -> tuple[Fraction, Format]:
    if suffix in _DECIMAL:
        return Fraction(10) ** _DECIMAL[suffix], "DecimalSI"
    if suffix in _BINARY:
        return Fraction(1024) ** _BINARY.index(suffix), "BinarySI"
    exponent = int(suffix[1:])
    if abs(exponent) > _LARGEST_EXPONENT:
        raise ValueError(f'exponent of a quantity is out of range: "{suffix}"')
    return Fraction(10) ** exponent, "DecimalExponent"


def _bounded(value: Fraction) -> Fraction:
    return min(Fraction(_ceiling(value * _NANO), _NANO), _MOST)


def _ceiling(value: Fraction) -> int:
    """Away from zero, as the API rounds: a little of a resource is still some of it."""
    return -(-value // 1) if value >= 0 else value // 1


def parse_quantity(text: QuantityText) -> Fraction:
    """The exact value of a quantity.

    Raises:
        ValueError: the text is not a quantity.
    """
    return read_quantity(text).value


def is_quantity(text: object) -> bool:
    """Whether a JSON value can be read as a quantity."""
    try:
        read_quantity(text)  # type: ignore[arg-type]  # the check is the point
    except ValueError:
        return False
    return True


def canonical_quantity(text: QuantityText) -> str:
    """The text with which the API server answers: `1000m` is `1`, `1024Mi` is `1Gi`, `0.5` is `500m`."""
    return str(read_quantity(text))


def _render(value: Fraction, notation: Format) -> str:
    if value == 0:
        return "0"
    if notation == "BinarySI" and abs(value) >= 1024:
        return _render_binary(_ceiling(value))
    for exponent, suffix in _DECIMAL_DESCENDING:
        scaled = value / Fraction(10) ** exponent
        if scaled.denominator == 1:
            if notation == "DecimalExponent":
                suffix = f"e{exponent}" if exponent else ""
            return f"{scaled.numerator}{suffix}"
    return f"{_ceiling(value * _NANO)}n"


def _render_binary(value: int) -> str:
    power = 0
    while value % 1024 == 0 and power < len(_BINARY) - 1:
        value //= 1024
        power += 1
    return f"{value}{_BINARY[power]}"


def add_quantities(left: QuantityText, right: QuantityText) -> str:
    """The canonical sum, in the notation of `left`, or of `right` when `left` is zero."""
    a, b = read_quantity(left), read_quantity(right)
    return _render(a.value + b.value, a.format if a.value else b.format)


def to_integer_ceiling(text: QuantityText) -> int:
    """Whole units, rounded up: `2500m` is 3."""
    return -int(-parse_quantity(text) // 1)
