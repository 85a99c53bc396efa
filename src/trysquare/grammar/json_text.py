"""JSON text: how values are written, in the one compact form that every grammar of ours allows.

A character is written as itself, except for the quote, the backslash, control characters and U+007F, which are
escaped. Control characters may be written in their short form or with their number, as llguidance allows it too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from trysquare.grammar.expressions import (
    EMPTY,
    LAST_CODE_POINT,
    NEVER,
    Chars,
    Choice,
    Expression,
    Ranges,
    Repeat,
    Sequence,
    Text,
    chars,
    in_sequence,
    inverted,
    one_of,
    repeated,
    without,
)

SHORT_ESCAPES = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r", 34: '"', 92: "\\"}
ESCAPED: Ranges = ((0, 31), (34, 34), (92, 92), (127, 127))
EVERY_CHARACTER: Ranges = ((0, LAST_CODE_POINT),)
QUOTE = Text('"')


def json_text(value: Any) -> str:
    """A value in its compact form."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("\x7f", "\\u007f")


def written_string(said: Expression) -> Expression:
    """The JSON text, quotes included, of a string that says this."""
    return in_sequence(QUOTE, written(said), QUOTE)


def written(said: Expression) -> Expression:
    """The JSON text, without quotes, of what a string says."""
    match said:
        case Text(text):
            return Text(json_text(text)[1:-1])
        case Chars(ranges):
            return written_characters(ranges)
        case Sequence(parts):
            return in_sequence(*map(written, parts))
        case Choice(options):
            return one_of(map(written, options))
        case Repeat(part, fewest, most):
            return repeated(written(part), fewest, most)
        case _:
            raise ValueError("what a string says has no rules")


@lru_cache(maxsize=1024)
def written_characters(ranges: Ranges) -> Expression:
    """The JSON text of one character of the ranges."""
    escaped = [point for low, high in without(ranges, inverted(ESCAPED)) for point in range(low, high + 1)]
    short = chars((ord(SHORT_ESCAPES[point]), ord(SHORT_ESCAPES[point])) for point in escaped if point in SHORT_ESCAPES)
    long = [point for point in escaped if point not in (34, 92)]
    return one_of(
        option
        for option in (
            chars(without(ranges, ESCAPED)),
            in_sequence(Text("\\"), short) if short != NEVER else NEVER,
            in_sequence(Text("\\u00"), _hexadecimal(long)) if long else NEVER,
        )
        if option != NEVER
    )


def _hexadecimal(points: Iterable[int]) -> Expression:
    """The last two digits of code points, in either case; digits with the same ones behind them are put together."""
    behind: dict[str, str] = {}
    for point in points:
        first, second = f"{point:02x}"
        behind[first] = behind.get(first, "") + second
    before: dict[str, str] = {}
    for first, seconds in behind.items():
        before[seconds] = before.get(seconds, "") + first
    return one_of(in_sequence(_letters(firsts), _letters(seconds)) for seconds, firsts in before.items())


def _letters(letters: Iterable[str]) -> Expression:
    """One of these hexadecimal digits, in either case."""
    return chars((ord(case), ord(case)) for letter in letters for case in {letter, letter.upper()})


def other_than(names: Iterable[str]) -> Expression:
    """What a string says that is none of these."""
    return _other_than(frozenset(names))


def _other_than(endings: frozenset[str]) -> Expression:
    """A string that is not among the endings, letter by letter."""
    if not endings:
        return repeated(Chars(EVERY_CHARACTER))
    firsts = sorted({ending[0] for ending in endings if ending})
    ways = [in_sequence(Text(first), _other_than(_behind(endings, first))) for first in firsts]
    other = chars(inverted((ord(first), ord(first)) for first in firsts))
    ways.append(in_sequence(other, repeated(Chars(EVERY_CHARACTER))))
    return one_of([*ways] if "" in endings else [*ways, EMPTY])


def _behind(endings: frozenset[str], first: str) -> frozenset[str]:
    return frozenset(ending[1:] for ending in endings if ending.startswith(first))
