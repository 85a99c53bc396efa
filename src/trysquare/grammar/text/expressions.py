"""Text expressions, grammar rules and JSON literals, independent of any dialect.

A regular language is an expression without `Rule`. Strings of a schema are described by their value and, separately,
by how JSON writes it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from math import inf
from typing import Any, TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Code points as sorted, inclusive ranges that do not touch."""
LAST_CODE_POINT = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)


@dataclass(frozen=True, slots=True)
class Text:
    """Literal text."""

    text: str


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Sequence:
    """Concatenation."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Alternation; without options nothing matches."""

    options: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Repetition; `most` None is unbounded."""

    part: Expression
    fewest: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Rule:
    """Reference to a rule."""

    name: str


Expression: TypeAlias = Text | Chars | Sequence | Choice | Repeat | Rule
EMPTY = Text("")
NEVER = Choice(())


@dataclass(frozen=True, kw_only=True, slots=True)
class Grammar:
    """Rules by name; a text starts at `root`."""

    rules: Mapping[str, Expression]
    root: str = "root"
    leaves: frozenset[str] = frozenset()
    """Rules of scalar values, which are regular. All other rules consist of texts and rules."""


def in_sequence(*parts: Expression) -> Expression:
    """The concatenation of the parts, with adjacent texts joined and empty ones left out."""
    joined: list[Expression] = []
    for part in chain.from_iterable(part.parts if isinstance(part, Sequence) else (part,) for part in parts):
        if part == NEVER:
            return NEVER
        last = joined[-1] if joined else None
        if isinstance(part, Text) and isinstance(last, Text):
            joined[-1] = Text(last.text + part.text)
        elif part != EMPTY:
            joined.append(part)
    if len(joined) > 1:
        return Sequence(tuple(joined))
    return joined[0] if joined else EMPTY


def one_of(options: Iterable[Expression]) -> Expression:
    """The alternation of the options, each once, in their order; NEVER adds none."""
    inner = (option.options if isinstance(option, Choice) else (option,) for option in options)
    found = tuple(dict.fromkeys(chain.from_iterable(inner)))
    return found[0] if len(found) == 1 else Choice(found)


def repeated(part: Expression, fewest: int = 0, most: int | None = None) -> Expression:
    """A part `fewest` to `most` times."""
    if most is not None and most < fewest:
        return NEVER
    if most == 0 or part == EMPTY:
        return EMPTY
    if part == NEVER:
        return EMPTY if fewest == 0 else NEVER
    return part if (fewest, most) == (1, 1) else Repeat(part, fewest, most)


def optional(part: Expression) -> Expression:
    """A part, or nothing."""
    return repeated(part, 0, 1)


def chars(ranges: Iterable[tuple[int, int]]) -> Expression:
    """One character of these ranges, without surrogates."""
    kept = without(merged(ranges), (SURROGATES,))
    if len(kept) == 1 and kept[0][0] == kept[0][1]:
        return Text(chr(kept[0][0]))
    return Chars(kept) if kept else NEVER


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sorted ranges, with touching ones merged."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def inverted(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Every code point outside the ranges."""
    taken = merged(ranges)
    starts = (0, *(high + 1 for _, high in taken))
    ends = (*(low - 1 for low, _ in taken), LAST_CODE_POINT)
    return tuple((start, end) for start, end in zip(starts, ends, strict=True) if start <= end)


def without(ranges: Iterable[tuple[int, int]], taken: Iterable[tuple[int, int]]) -> Ranges:
    """The difference of two sets of ranges."""
    return inverted((*inverted(ranges), *taken))


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct parts of an expression."""
    match expression:
        case Sequence(parts):
            return parts
        case Choice(options):
            return options
        case Repeat(part):
            return (part,)
        case _:
            return ()


def rules_named(expression: Expression) -> frozenset[str]:
    """The names of the rules that an expression refers to."""
    if isinstance(expression, Rule):
        return frozenset({expression.name})
    return frozenset(name for child in children(expression) for name in rules_named(child))


def reachable(graph: Mapping[str, frozenset[str]], start: Iterable[str]) -> set[str]:
    """The names that can be reached from the start, which is included."""
    found: set[str] = set()
    waiting = set(start)
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= graph.get(name, frozenset()) - found
    return found


def length_of(expression: Expression) -> tuple[int, float]:
    """Minimum and maximum number of characters of a regular expression."""
    match expression:
        case Text(text):
            return len(text), len(text)
        case Chars():
            return 1, 1
        case Sequence(parts):
            lengths = list(map(length_of, parts))
            return sum(least for least, _ in lengths), sum(most for _, most in lengths)
        case Choice(options):
            lengths = list(map(length_of, options)) or [(0, 0)]
            return min(least for least, _ in lengths), max(most for _, most in lengths)
        case Repeat(part, fewest, most):
            shortest, longest = length_of(part)
            return shortest * fewest, inf if most is None else longest * most
        case Rule(name):
            raise ValueError(f"the length of rule {name} is unknown")


SHORT_ESCAPES = {8: "b", 9: "t", 10: "n", 12: "f", 13: "r", 34: '"', 92: "\\"}
# Control characters may have their short or their numeric escape, as llguidance allows both.
ESCAPED: Ranges = ((0, 31), (34, 34), (92, 92), (127, 127))
EVERY_CHARACTER: Ranges = ((0, LAST_CODE_POINT),)
QUOTE = Text('"')


def json_text(value: Any) -> str:
    """Compact JSON of a value, with U+007F escaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("\x7f", "\\u007f")


def written_string(value: Expression) -> Expression:
    """The JSON text, with quotes, of a string value."""
    return in_sequence(QUOTE, written(value), QUOTE)


def written(value: Expression) -> Expression:
    """The JSON text, without quotes, of a string value."""
    match value:
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
            raise ValueError("a string value has no rules")


@lru_cache(maxsize=1024)
def written_characters(ranges: Ranges) -> Expression:
    """The JSON text of one character of the ranges."""
    escaped = [point for low, high in without(ranges, inverted(ESCAPED)) for point in range(low, high + 1)]
    short = chars((ord(SHORT_ESCAPES[point]), ord(SHORT_ESCAPES[point])) for point in escaped if point in SHORT_ESCAPES)
    long = [point for point in escaped if point not in (34, 92)]
    numeric = in_sequence(Text("\\u00"), _hexadecimal(long))
    return one_of((chars(without(ranges, ESCAPED)), in_sequence(Text("\\"), short), numeric))


def _hexadecimal(points: Iterable[int]) -> Expression:
    """The last two hexadecimal digits of code points, in either case, grouped by the second digit. None is NEVER."""
    behind, before = defaultdict[str, str](str), defaultdict[str, str](str)
    for point in points:
        first, second = f"{point:02x}"
        behind[first] += second
    for first, seconds in behind.items():
        before[seconds] += first
    return one_of(in_sequence(_letters(firsts), _letters(seconds)) for seconds, firsts in before.items())


def _letters(letters: Iterable[str]) -> Expression:
    """One of these digits, in either case."""
    return chars((ord(case), ord(case)) for letter in letters for case in {letter, letter.upper()})


def other_than(endings: frozenset[str]) -> Expression:
    """Any string value except these, letter by letter."""
    if not endings:
        return repeated(Chars(EVERY_CHARACTER))
    firsts = sorted({ending[0] for ending in endings if ending})
    options = [
        in_sequence(Text(first), other_than(frozenset(ending[1:] for ending in endings if ending.startswith(first))))
        for first in firsts
    ]
    other = chars(inverted((ord(first), ord(first)) for first in firsts))
    options.append(in_sequence(other, repeated(Chars(EVERY_CHARACTER))))
    return one_of(options if "" in endings else [*options, EMPTY])
