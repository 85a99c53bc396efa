"""Expressions: what a piece of text may be, the same for every dialect.

A regular language is an expression without `Rule`. Strings of a schema are described by what they say
(`patterns.py` reads that) and, apart from it, by how they are written in JSON (`json_text.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Code points as sorted ranges that do not touch; both ends belong to them."""
LAST_CODE_POINT = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)


@dataclass(frozen=True, slots=True)
class Text:
    """Exactly this."""

    text: str


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after another."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several; without any, nothing at all fits."""

    options: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The same again and again; `most` None is without end."""

    part: Expression
    fewest: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Rule:
    """What the rule of this name says."""

    name: str


Expression: TypeAlias = Text | Chars | Sequence | Choice | Repeat | Rule
EMPTY = Text("")
NEVER = Choice(())


@dataclass(frozen=True, kw_only=True, slots=True)
class Grammar:
    """Rules by name; `root` is where a text starts."""

    rules: Mapping[str, Expression]
    root: str = "root"
    leaves: frozenset[str] = frozenset()
    """The rules of single values, which are regular. All other rules are made of texts and rules alone."""


def in_sequence(*parts: Expression) -> Expression:
    """The parts one after another, with neighbouring texts joined and empty ones left out."""
    joined: list[Expression] = []
    for part in _flat(parts):
        if part == NEVER:
            return NEVER
        last = joined[-1] if joined else None
        if isinstance(part, Text) and isinstance(last, Text):
            joined[-1] = Text(last.text + part.text)
        elif part != EMPTY:
            joined.append(part)
    return _only(joined) or (Sequence(tuple(joined)) if joined else EMPTY)


def _flat(parts: Iterable[Expression]) -> Iterator[Expression]:
    for part in parts:
        if isinstance(part, Sequence):
            yield from part.parts
        else:
            yield part


def one_of(options: Iterable[Expression]) -> Expression:
    """Any of the options, each once, in their order."""
    found: dict[Expression, None] = {}
    for option in options:
        inner = option.options if isinstance(option, Choice) else (option,)
        found.update(dict.fromkeys(inner))
    return _only(list(found)) or Choice(tuple(found))


def _only(parts: list[Expression]) -> Expression | None:
    return parts[0] if len(parts) == 1 else None


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
    """One character of these ranges, without surrogates, which are no characters."""
    kept = without(merged(ranges), (SURROGATES,))
    if len(kept) == 1 and kept[0][0] == kept[0][1]:
        return Text(chr(kept[0][0]))
    return Chars(kept) if kept else NEVER


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Ranges sorted, with those that touch made one."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def inverted(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Every code point that is not in the ranges."""
    found: list[tuple[int, int]] = []
    start = 0
    for low, high in merged(ranges):
        if low > start:
            found.append((start, low - 1))
        start = high + 1
    if start <= LAST_CODE_POINT:
        found.append((start, LAST_CODE_POINT))
    return tuple(found)


def without(ranges: Iterable[tuple[int, int]], taken: Iterable[tuple[int, int]]) -> Ranges:
    """The code points of the first that are not in the second."""
    return inverted((*inverted(ranges), *taken))


def children(expression: Expression) -> tuple[Expression, ...]:
    """What an expression is directly made of."""
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


def length_of(expression: Expression) -> tuple[int, int | None]:
    """The fewest and the most characters that a regular expression takes."""
    match expression:
        case Text(text):
            return len(text), len(text)
        case Chars():
            return 1, 1
        case Sequence(parts):
            return reduce(_added, map(length_of, parts), (0, 0))
        case Choice(options):
            return reduce(_either, map(length_of, options)) if options else (0, 0)
        case Repeat(part, fewest, most):
            shortest, longest = length_of(part)
            return shortest * fewest, None if longest is None or most is None else longest * most
        case Rule(name):
            raise ValueError(f"the length of the rule {name} is not known")


def _added(one: tuple[int, int | None], other: tuple[int, int | None]) -> tuple[int, int | None]:
    return one[0] + other[0], None if one[1] is None or other[1] is None else one[1] + other[1]


def _either(one: tuple[int, int | None], other: tuple[int, int | None]) -> tuple[int, int | None]:
    return min(one[0], other[0]), None if one[1] is None or other[1] is None else max(one[1], other[1])
