from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.merge.quantity import (
    add_quantities,
    canonical_quantity,
    is_quantity,
    parse_quantity,
    to_integer_ceiling,
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1000m", "1"),
        ("0.5", "500m"),
        ("0.7", "700m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("1023", "1023"),
        ("1024", "1024"),
        ("100.5Ki", "102912"),
        ("512Ki", "512Ki"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        ("12e6", "12e6"),
        ("1e4", "10e3"),
        ("1E3", "1e3"),
        ("1E", "1E"),
        ("3.", "3"),
        (".5", "500m"),
        ("-2.50", "-2500m"),
        ("+4k", "4k"),
        ("4000", "4k"),
        ("0Gi", "0"),
        ("1n", "1n"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("1u", "1u"),
        ("10E", "9223372036854775807"),
        (2.0, "2"),
        (0.5, "500m"),
        (8, "8"),
        (1e22, "9223372036854775807"),
    ],
)
def test_canonical_text_is_what_the_api_server_shows(text: str | float, canonical: str) -> None:
    expected = "9223372036854775807" if canonical.startswith("9223") else canonical
    assert canonical_quantity(text) == expected
    assert canonical_quantity(canonical) == canonical


@pytest.mark.parametrize(
    "text", ["", "1x", "two", "1 Gi", "1ki", "--1", "1e", "1e999", ".", "1.5.2"]
)
def test_text_that_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"quantity|range"):
        parse_quantity(text)
    assert not is_quantity(text)


def test_values_that_are_no_text_are_refused() -> None:
    assert not any(map(is_quantity, (True, None, {}, [])))


def test_sum_is_exact_across_notations() -> None:
    assert add_quantities("512Mi", "512Mi") == "1Gi"
    assert add_quantities("0", "1Gi") == "1Gi"
    assert add_quantities("1500m", "0.5") == "2"


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("2500m", 3),
        ("0.7", 1),
        ("2", 2),
        ("1u", 1),
        ("0", 0),
        ("-1500m", -1),
    ],
)
def test_rounding_goes_up(text: str, whole: int) -> None:
    assert to_integer_ceiling(text) == whole


@settings(deadline=None, max_examples=200, derandomize=True)
@given(st.integers(-(10**18), 10**18), st.sampled_from(["n", "u", "m", "", "k", "Ki", "Mi"]))
def test_canonical_text_keeps_the_value(number: int, suffix: str) -> None:
    value = parse_quantity(f"{number}{suffix}")
    assert parse_quantity(canonical_quantity(f"{number}{suffix}")) == value
    assert value * 10**9 == Fraction(int(value * 10**9))
