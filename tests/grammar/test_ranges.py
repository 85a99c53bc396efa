"""Ranges: numbers between bounds, digit by digit."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.grammar.text.ranges import bounded_number_text, integer_text, multiples_text, number_text, split_number
from trysquare.grammar.text.regex import says

BOUNDS = st.none() | st.integers(-1_200, 1_200) | st.integers(-(10**20), 10**20)
DECIMALS = st.decimals(-120, 120, allow_nan=False, allow_infinity=False, places=3).map(Fraction)


@given(BOUNDS, BOUNDS, st.integers(-1_300, 1_300) | st.integers(-(10**21), 10**21))
def test_an_integer_fits_exactly_where_it_lies_between_the_bounds(
    least: int | None, most: int | None, number: int
) -> None:
    expression = integer_text(least, most)
    inside = (least is None or number >= least) and (most is None or number <= most)
    assert says(expression, str(number)) is inside


@given(BOUNDS, BOUNDS)
def test_the_bounds_themselves_fit_and_their_neighbours_outside_do_not(least: int | None, most: int | None) -> None:
    if least is not None and most is not None and least > most:
        assert not says(integer_text(least, most), str(least))
        return
    expression = integer_text(least, most)
    for bound, step in ((least, -1), (most, 1)):
        if bound is not None:
            assert says(expression, str(bound))
            assert not says(expression, str(bound + step))


@pytest.mark.parametrize("text", ["01", "+1", "1.0", "1e3", "", "-", "--1", " 1"])
def test_other_ways_to_write_an_integer_do_not_fit(text: str) -> None:
    assert not says(integer_text(None, None), text)


@given(st.none() | DECIMALS, st.none() | DECIMALS, st.booleans(), st.booleans(), DECIMALS, st.integers(0, 3))
def test_a_number_fits_exactly_where_it_lies_between_the_bounds(
    least: Fraction | None, most: Fraction | None, above: bool, below: bool, number: Fraction, zeros: int
) -> None:
    expression = bounded_number_text(least, most, above=above, below=below)
    for value in (number, *(bound for bound in (least, most) if bound is not None)):
        whole, digits = split_number(abs(value))
        tail = f".{digits}{'0' * zeros}" if digits or zeros else ""
        text = f"{'-' if value < 0 else ''}{whole}{tail}"
        assert says(expression, text) is _inside(value, least, most, above=above, below=below), text


def _inside(value: Fraction, least: Fraction | None, most: Fraction | None, *, above: bool, below: bool) -> bool:
    if least is not None and (value < least or (above and value == least)):
        return False
    return most is None or value < most or (not below and value == most)


def test_a_bounded_number_has_no_exponent() -> None:
    assert not says(bounded_number_text(Fraction(0), None), "1e3")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_fits_without_bounds(value: float) -> None:
    assert says(number_text(), format(Decimal(str(value)), "f"))


@pytest.mark.parametrize("text", ["1e999", "NaN", "Infinity", "-Infinity", "0x10", ".5", "5.", "1e", "01.5"])
def test_what_json_does_not_know_or_makes_infinite_does_not_fit(text: str) -> None:
    assert not says(number_text(), text)


@given(st.sampled_from([2, 4, 5, 8, 10, 20, 25, 50, 100, 125, 250, 500, 1000]), st.integers(-10_000, 10_000))
def test_multiples_that_their_last_digits_tell_fit(step: int, number: int) -> None:
    expression = multiples_text(step)
    assert expression is not None
    assert says(expression, str(number)) is (number % step == 0)


@pytest.mark.parametrize("step", [3, 7, 16, 99])
def test_multiples_that_no_last_digits_tell_have_no_text(step: int) -> None:
    assert multiples_text(step) is None
