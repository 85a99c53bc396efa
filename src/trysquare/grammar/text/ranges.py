"""Ranges: numbers between bounds, digit by digit.

Whole numbers are written without a plus or leading zeros. A number between bounds is written without an exponent, so
that its digits decide.
"""

from __future__ import annotations

from fractions import Fraction

from trysquare.grammar.text.expressions import NEVER, Expression, Text, chars, in_sequence, one_of, optional, repeated

DIGIT = chars([(48, 57)])
NONZERO = chars([(49, 57)])
ZEROS = repeated(Text("0"))
FRACTION = optional(in_sequence(Text("."), repeated(DIGIT, 1)))
MOST_DIGITS = 40
"""A bound with more digits behind its point would make more rules than any schema is worth."""


def digit_between(low: int, high: int) -> Expression:
    """A digit from the lower to the higher one."""
    return chars([(48 + low, 48 + high)]) if low <= high else NEVER


def any_digits(fewest: int, most: int | None = None) -> Expression:
    """That many digits, whatever they are."""
    return repeated(DIGIT, fewest, most)


def integer_text(least: int | None, most: int | None) -> Expression:
    """The texts of all whole numbers from `least` to `most`."""
    positive = natural_text(max(0, least or 0), most)
    if least is not None and least >= 0:
        return positive
    # llguidance knows -0 in whole numbers with two bounds or none, and the dialects have to agree.
    smallest = 0 if (least is None) == (most is None) else 1
    negative = natural_text(smallest if most is None else max(smallest, -most), None if least is None else -least)
    return one_of(way for way in (_negated(negative), positive) if way != NEVER)


def _negated(text: Expression) -> Expression:
    return in_sequence(Text("-"), text)


def natural_text(least: int, most: int | None) -> Expression:
    """The texts of the whole numbers from `least`, which is not negative, to `most`."""
    if most is not None and most < least:
        return NEVER
    if most is None:
        longer = in_sequence(NONZERO, any_digits(len(str(least))))
        if least == 0:
            return one_of([Text("0"), in_sequence(NONZERO, any_digits(0))])
        return one_of([*_same_length(str(least), "9" * len(str(least))), longer])
    return one_of(way for low, high in _by_length(least, most) for way in _same_length(low, high))


def _by_length(least: int, most: int) -> list[tuple[str, str]]:
    """The range cut into pieces whose numbers have the same number of digits."""
    pieces: list[tuple[str, str]] = []
    for length in range(len(str(least)), len(str(most)) + 1):
        low = max(least, 10 ** (length - 1) if length > 1 else 0)
        high = min(most, 10**length - 1)
        pieces.append((str(low), str(high)))
    return pieces


def _same_length(low: str, high: str) -> list[Expression]:
    """The digits from `low` to `high`, which are equally many."""
    if not low:
        return [Text("")]
    count = len(low) - 1
    if low[1:] == "0" * count and high[1:] == "9" * count:
        return [in_sequence(digit_between(int(low[0]), int(high[0])), any_digits(count, count))]
    if low[0] == high[0]:
        return [in_sequence(Text(low[0]), one_of(_same_length(low[1:], high[1:])))]
    from_start, to_end = low[1:] == "0" * count, high[1:] == "9" * count
    first, last = int(low[0]) + (not from_start), int(high[0]) - (not to_end)
    ways = [
        NEVER if from_start else in_sequence(Text(low[0]), one_of(_same_length(low[1:], "9" * count))),
        in_sequence(digit_between(first, last), any_digits(count, count)),
        NEVER if to_end else in_sequence(Text(high[0]), one_of(_same_length("0" * count, high[1:]))),
    ]
    return [way for way in ways if way != NEVER]


def multiples_text(step: int) -> Expression | None:
    """The texts of the multiples of a power of ten, of two or of five; None where digits at the end do not tell."""
    places = next((places for places in range(4) if 10**places % step == 0), None)
    if places is None:
        return None
    short = one_of(Text(str(number)) for number in range(0, 10**places, step))
    ends = one_of(Text(f"{number:0{places}d}") for number in range(0, 10**places, step))
    long = in_sequence(NONZERO, any_digits(0), ends)
    nonzero = one_of(Text(str(number)) for number in range(step, 10**places, step))
    return one_of([short, long, _negated(one_of([nonzero, long]))])


def number_text() -> Expression:
    """The texts of all numbers, with an exponent or without. Longer exponents would make them infinite."""
    whole = one_of([Text("0"), in_sequence(NONZERO, any_digits(0))])
    fraction = in_sequence(Text("."), any_digits(1))
    sign = chars([(43, 43), (45, 45)])
    exponent = in_sequence(chars([(69, 69), (101, 101)]), optional(sign), any_digits(1, 2))
    return in_sequence(optional(Text("-")), whole, optional(fraction), optional(exponent))


def bounded_number_text(
    least: Fraction | None, most: Fraction | None, *, above: bool = False, below: bool = False
) -> Expression:
    """The texts, without exponents, of numbers between bounds; `above` and `below` leave the bounds themselves out."""
    zero = Fraction(0)
    positive = _magnitude(max(least or zero, zero), most, above and least is not None and least >= 0, below)
    if least is not None and least >= 0:
        return positive
    low = zero if most is None else max(-most, zero)
    negative = _magnitude(low, None if least is None else -least, below and most is not None and most <= 0, above)
    return one_of(way for way in (_negated(negative) if negative != NEVER else NEVER, positive) if way != NEVER)


def _magnitude(least: Fraction, most: Fraction | None, above: bool, below: bool) -> Expression:
    """Numbers that are not negative: by their whole part, then by the digits behind the point."""
    if most is not None and (most < least or (most == least and (above or below))):
        return NEVER
    low, low_digits = split_number(least)
    fraction = in_sequence(Text("."), _digits_from(low_digits, above)) if low_digits or above else FRACTION
    lowest = in_sequence(Text(str(low)), fraction)
    if most is None:
        return one_of([lowest, in_sequence(natural_text(low + 1, None), FRACTION)])
    high, high_digits = split_number(most)
    if low == high:
        return in_sequence(Text(str(low)), _fraction_between(low_digits, high_digits, above, below))
    between = in_sequence(natural_text(low + 1, high - 1), FRACTION)
    highest = in_sequence(Text(str(high)), _fraction_to(high_digits, below))
    return one_of(way for way in (lowest, between, highest) if way != NEVER)


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


def _digits_from(low: str, above: bool) -> Expression:
    """The digits behind the point of what is at least (or above) `low`."""
    if not low:
        # Above nothing: some digit that is not 0 has to come.
        return in_sequence(ZEROS, NONZERO, any_digits(0)) if above else any_digits(0)
    higher = in_sequence(digit_between(int(low[0]) + 1, 9), any_digits(0))
    same = in_sequence(Text(low[0]), _digits_from(low[1:], above))
    return one_of(way for way in (same, higher) if way != NEVER)


def _fraction_to(high: str, below: bool) -> Expression:
    """The digits behind the point, with it or without any, of what is at most (or below) `high`."""
    if not high:
        return NEVER if below else optional(in_sequence(Text(".0"), ZEROS))
    return optional(in_sequence(Text("."), _digits_to(high, below, started=False)))


def _digits_to(high: str, below: bool, *, started: bool) -> Expression:
    """Digits up to `high`; before the first one has come, stopping is not allowed."""
    if not high:
        return NEVER if below else ZEROS
    lower = in_sequence(digit_between(0, int(high[0]) - 1), any_digits(0))
    same = in_sequence(Text(high[0]), _digits_to(high[1:], below, started=True))
    ways = [way for way in (lower, same) if way != NEVER]
    # Digits that end early are a prefix of `high` and so smaller, since the last digit of a bound is not 0.
    return one_of([*ways, Text("")]) if started else one_of(ways)


def _fraction_between(low: str, high: str, above: bool, below: bool) -> Expression:
    """The digits behind the point where both bounds have the same whole part."""
    if low == high:
        return in_sequence(Text(f".{low}"), ZEROS) if low else optional(in_sequence(Text(".0"), ZEROS))
    inner = in_sequence(Text("."), _digits_between(low, high, above, below))
    return one_of([Text(""), inner]) if not low and not above else inner


def _digits_between(low: str, high: str, above: bool, below: bool) -> Expression:
    """Digits, at least one, from `low` to `high`, which differ; `high` has a digit left."""
    first, last = low[:1] or "0", high[0]
    if first == last:
        # What ends here is a prefix of `high`; it is high enough only where nothing of `low` is left.
        stop = [Text("")] if not low[1:] and not above else []
        return in_sequence(Text(first), one_of([_digits_between(low[1:], high[1:], above, below), *stop]))
    lower = in_sequence(Text(first), _digits_from(low[1:], above))
    middle = in_sequence(digit_between(int(first) + 1, int(last) - 1), any_digits(0))
    upper = in_sequence(Text(last), _digits_to(high[1:], below, started=True))
    return one_of(way for way in (lower, middle, upper) if way != NEVER)
