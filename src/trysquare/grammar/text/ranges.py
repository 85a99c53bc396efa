"""Ranges: numbers between bounds, digit by digit.

Whole numbers are written without a plus or leading zeros. A number between bounds is written without an exponent, so
that its digits decide.
"""

from __future__ import annotations

from fractions import Fraction

from trysquare.grammar.text import expressions as ex

DIGIT = ex.chars([(48, 57)])
NONZERO = ex.chars([(49, 57)])
ZEROS = ex.repeated(ex.Text("0"))
FRACTION = ex.optional(ex.in_sequence(ex.Text("."), ex.repeated(DIGIT, 1)))
MOST_DIGITS = 40
"""A bound with more digits behind its point would make more rules than any schema is worth."""


def digit_between(low: int, high: int) -> ex.Expression:
    return ex.chars([(48 + low, 48 + high)]) if low <= high else ex.NEVER


def any_digits(fewest: int, most: int | None = None) -> ex.Expression:
    return ex.repeated(DIGIT, fewest, most)


def integer_text(least: int | None, most: int | None) -> ex.Expression:
    """The texts of all integers from `least` to `most`."""
    positive = natural_text(max(0, least or 0), most)
    if least is not None and least >= 0:
        return positive
    # llguidance knows -0 in integers with two bounds or none, and the dialects have to agree.
    smallest = 0 if (least is None) == (most is None) else 1
    negative = natural_text(smallest if most is None else max(smallest, -most), None if least is None else -least)
    return ex.one_of((ex.in_sequence(ex.Text("-"), negative), positive))


def natural_text(least: int, most: int | None) -> ex.Expression:
    """The texts of the integers from `least`, which is not negative, to `most`."""
    if most is not None and most < least:
        return ex.NEVER
    if most is None:
        if least == 0:
            return ex.one_of([ex.Text("0"), ex.in_sequence(NONZERO, any_digits(0))])
        digits = len(str(least))
        return ex.one_of([_same_length(str(least), "9" * digits), ex.in_sequence(NONZERO, any_digits(digits))])
    return ex.one_of(
        _same_length(str(max(least, 10 ** (digits - 1) if digits > 1 else 0)), str(min(most, 10**digits - 1)))
        for digits in range(len(str(least)), len(str(most)) + 1)
    )


def _same_length(low: str, high: str) -> ex.Expression:
    """The digits from `low` to `high`, which are equally many."""
    if not low:
        return ex.EMPTY
    count = len(low) - 1
    from_start, to_end = low[1:] == "0" * count, high[1:] == "9" * count
    if low[0] == high[0] and not (from_start and to_end):
        return ex.in_sequence(ex.Text(low[0]), _same_length(low[1:], high[1:]))
    first, last = int(low[0]) + (not from_start), int(high[0]) - (not to_end)
    ways = [
        ex.NEVER if from_start else ex.in_sequence(ex.Text(low[0]), _same_length(low[1:], "9" * count)),
        ex.in_sequence(digit_between(first, last), any_digits(count, count)),
        ex.NEVER if to_end else ex.in_sequence(ex.Text(high[0]), _same_length("0" * count, high[1:])),
    ]
    return ex.one_of(ways)


def multiples_text(step: int) -> ex.Expression | None:
    """The texts of the multiples of a power of ten, of two or of five; None where digits at the end do not tell."""
    places = next((places for places in range(4) if 10**places % step == 0), None)
    if places is None:
        return None
    short = ex.one_of(ex.Text(str(number)) for number in range(0, 10**places, step))
    ends = ex.one_of(ex.Text(f"{number:0{places}d}") for number in range(0, 10**places, step))
    long = ex.in_sequence(NONZERO, any_digits(0), ends)
    nonzero = ex.one_of(ex.Text(str(number)) for number in range(step, 10**places, step))
    return ex.one_of([short, long, ex.in_sequence(ex.Text("-"), ex.one_of([nonzero, long]))])


def number_text() -> ex.Expression:
    """The texts of all numbers, with an exponent or without. Longer exponents would make them infinite."""
    sign = ex.chars([(43, 43), (45, 45)])
    exponent = ex.in_sequence(ex.chars([(69, 69), (101, 101)]), ex.optional(sign), any_digits(1, 2))
    return ex.in_sequence(ex.optional(ex.Text("-")), natural_text(0, None), FRACTION, ex.optional(exponent))


def bounded_number_text(
    least: Fraction | None, most: Fraction | None, *, above: bool = False, below: bool = False
) -> ex.Expression:
    """The texts, without exponents, of numbers between bounds; `above` and `below` leave the bounds themselves out."""
    zero = Fraction(0)
    positive = _magnitude(max(least or zero, zero), most, above and least is not None and least >= 0, below)
    if least is not None and least >= 0:
        return positive
    low = zero if most is None else max(-most, zero)
    negative = _magnitude(low, None if least is None else -least, below and most is not None and most <= 0, above)
    return ex.one_of((ex.in_sequence(ex.Text("-"), negative), positive))


def _magnitude(least: Fraction, most: Fraction | None, above: bool, below: bool) -> ex.Expression:
    """Numbers that are not negative: by their whole part, then by the digits behind the point."""
    if most is not None and (most < least or (most == least and (above or below))):
        return ex.NEVER
    low, low_digits = split_number(least)
    fraction = ex.in_sequence(ex.Text("."), _digits_from(low_digits, above)) if low_digits or above else FRACTION
    lowest = ex.in_sequence(ex.Text(str(low)), fraction)
    if most is None:
        return ex.one_of([lowest, ex.in_sequence(natural_text(low + 1, None), FRACTION)])
    high, high_digits = split_number(most)
    if low == high:
        return ex.in_sequence(ex.Text(str(low)), _fraction_between(low_digits, high_digits, above, below))
    between = ex.in_sequence(natural_text(low + 1, high - 1), FRACTION)
    highest = ex.in_sequence(ex.Text(str(high)), _fraction_to(high_digits, below))
    return ex.one_of((lowest, between, highest))


def split_number(value: Fraction) -> tuple[int, str]:
    """The whole part of a number that is not negative, and its digits behind the point."""
    whole, rest = divmod(value, 1)
    digits = ""
    while rest:
        digit, rest = divmod(rest * 10, 1)
        digits += str(digit)
        if len(digits) > MOST_DIGITS:
            raise ValueError(f"{value} has more than {MOST_DIGITS} digits behind its point")
    return int(whole), digits


def _digits_from(low: str, above: bool) -> ex.Expression:
    """The digits behind the point of what is at least (or above) `low`."""
    if not low:
        # Above nothing: some digit that is not 0 has to come.
        return ex.in_sequence(ZEROS, NONZERO, any_digits(0)) if above else any_digits(0)
    higher = ex.in_sequence(digit_between(int(low[0]) + 1, 9), any_digits(0))
    same = ex.in_sequence(ex.Text(low[0]), _digits_from(low[1:], above))
    return ex.one_of((same, higher))


def _fraction_to(high: str, below: bool) -> ex.Expression:
    """The digits behind the point, with it or without any, of what is at most (or below) `high`."""
    if not high:
        return ex.NEVER if below else ex.optional(ex.in_sequence(ex.Text(".0"), ZEROS))
    return ex.optional(ex.in_sequence(ex.Text("."), _digits_to(high, below, started=False)))


def _digits_to(high: str, below: bool, *, started: bool) -> ex.Expression:
    """Digits up to `high`; before the first one has come, stopping is not allowed."""
    if not high:
        return ex.NEVER if below else ZEROS
    lower = ex.in_sequence(digit_between(0, int(high[0]) - 1), any_digits(0))
    same = ex.in_sequence(ex.Text(high[0]), _digits_to(high[1:], below, started=True))
    # Digits that end early are a prefix of `high` and so smaller, since the last digit of a bound is not 0.
    return ex.one_of((lower, same, ex.EMPTY) if started else (lower, same))


def _fraction_between(low: str, high: str, above: bool, below: bool) -> ex.Expression:
    """The digits behind the point where both bounds have the same whole part."""
    if low == high:
        return ex.in_sequence(ex.Text(f".{low}"), ZEROS) if low else ex.optional(ex.in_sequence(ex.Text(".0"), ZEROS))
    inner = ex.in_sequence(ex.Text("."), _digits_between(low, high, above, below))
    return ex.one_of([ex.EMPTY, inner]) if not low and not above else inner


def _digits_between(low: str, high: str, above: bool, below: bool) -> ex.Expression:
    """Digits, at least one, from `low` to `high`, which differ; `high` has a digit left."""
    first, last = low[:1] or "0", high[0]
    if first == last:
        # What ends here is a prefix of `high`; it is high enough only where nothing of `low` is left.
        stop = ex.EMPTY if not low[1:] and not above else ex.NEVER
        return ex.in_sequence(ex.Text(first), ex.one_of([_digits_between(low[1:], high[1:], above, below), stop]))
    lower = ex.in_sequence(ex.Text(first), _digits_from(low[1:], above))
    middle = ex.in_sequence(digit_between(int(first) + 1, int(last) - 1), any_digits(0))
    upper = ex.in_sequence(ex.Text(last), _digits_to(high[1:], below, started=True))
    return ex.one_of((lower, middle, upper))
