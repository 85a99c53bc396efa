"""Lengths: what a pattern allows, cut down to texts of some lengths."""

from __future__ import annotations

from math import inf

from trysquare.grammar.expressions import (
    NEVER,
    Choice,
    Expression,
    Repeat,
    Sequence,
    in_sequence,
    length_of,
    one_of,
    repeated,
)

MOST_SPLITS = 200
"""Where two parts can be long, every way to share the length between them is written out, up to so many."""


def of_length(expression: Expression, shortest: int, longest: float) -> Expression | None:
    """The texts that have so many characters; None where that would take too many rules."""
    least, most = length_of(expression)
    if least > longest or (most is not None and most < shortest):
        return NEVER
    if least >= shortest and most is not None and most <= longest:
        return expression
    if least >= shortest and longest == inf:
        return expression
    match expression:
        case Choice(options):
            found = [of_length(option, shortest, longest) for option in options]
            known = [option for option in found if option is not None and option != NEVER]
            return None if None in found else one_of(known)
        case Repeat(part, fewest, highest):
            return _repeat_of_length(part, fewest, highest, shortest, longest)
        case Sequence(parts):
            return _sequence_of_length(parts, shortest, longest)
        case _:
            return expression


def _repeat_of_length(
    part: Expression, fewest: int, highest: int | None, shortest: int, longest: float
) -> Expression | None:
    size, most = length_of(part)
    if size != most or not size:
        return None
    low = max(fewest, -(-shortest // size))
    high = highest if longest == inf else int(min(inf if highest is None else highest, longest // size))
    return repeated(part, low, high)


def _sequence_of_length(parts: tuple[Expression, ...], shortest: int, longest: float) -> Expression | None:
    """The first part that varies takes each of its lengths in turn, the others what is left."""
    index = next(index for index, part in enumerate(parts) if len(set(length_of(part))) > 1)
    before, part, after = parts[:index], parts[index], in_sequence(*parts[index + 1 :])
    fixed = length_of(in_sequence(*before))[0]
    if len(set(length_of(after))) == 1:
        rest = fixed + length_of(after)[0]
        found = of_length(part, max(0, shortest - rest), longest - rest)
        return None if found is None else in_sequence(*before, found, after)
    ways = _splits(part, after, max(0, shortest - fixed), longest - fixed)
    return None if ways is None else in_sequence(*before, one_of(ways))


def _splits(part: Expression, after: Expression, shortest: int, longest: float) -> list[Expression] | None:
    least, most = length_of(part)
    last = min(inf if most is None else most, longest - length_of(after)[0])
    if last == inf or last - least > MOST_SPLITS:
        return None
    found: list[Expression] = []
    for size in range(least, int(last) + 1):
        here = of_length(part, size, size)
        there = of_length(after, max(0, shortest - size), longest - size)
        if here is None or there is None:
            return None
        if NEVER not in (here, there):
            found.append(in_sequence(here, there))
    return found if len(found) <= MOST_SPLITS else None
