"""Intersection: the values that two shapes have in common, and whether there can be any.

What cannot be worked out raises `Undecided`, which says what it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import inf, lcm
from typing import Any

from trysquare.grammar.admission import admits
from trysquare.grammar.expressions import NEVER, Expression
from trysquare.grammar.json_text import json_text
from trysquare.grammar.lengths import of_length
from trysquare.grammar.ranges import multiples_text
from trysquare.grammar.regex_text import says
from trysquare.grammar.shapes import (
    NOTHING,
    Anything,
    Arrays,
    Constants,
    Integers,
    Named,
    Numbers,
    Objects,
    Property,
    Shape,
    Strings,
    Union,
    any_of,
    constants_of,
    options_of,
)

MOST_MULTIPLES = 1_000
MOST_ALTERNATIVES = 2_000


class Undecided(Exception):
    """Two shapes whose common values cannot be worked out."""


class Intersecting:
    """Works with the table of names, and notices where it goes round in a circle."""

    def __init__(self, named: Mapping[str, Shape]) -> None:
        self._named = named
        self._open: set[tuple[Shape, Shape]] = set()

    def meet(self, one: Shape, other: Shape) -> Shape:
        """The shape of the values that both allow."""
        if one == other or isinstance(other, Anything):
            return one
        if isinstance(one, Anything):
            return other
        if isinstance(one, Named) or isinstance(other, Named):
            return self._meet_named(one, other)
        if len(options_of(one)) * len(options_of(other)) > MOST_ALTERNATIVES:
            raise Undecided("so many alternatives")
        if isinstance(one, Union):
            return any_of(self.meet(option, other) for option in one.options)
        if isinstance(other, Union):
            return any_of(self.meet(one, option) for option in other.options)
        return self._meet_plain(one, other)

    def _meet_named(self, one: Shape, other: Shape) -> Shape:
        pair = (one, other)
        if pair in self._open:
            raise Undecided("schemas that contain themselves on both sides")
        self._open.add(pair)
        try:
            return self.meet(self.opened(one), self.opened(other))
        finally:
            self._open.remove(pair)

    def opened(self, shape: Shape) -> Shape:
        """A shape without a name at its top."""
        seen: set[str] = set()
        while isinstance(shape, Named):
            if shape.name in seen or shape.name not in self._named:
                raise Undecided("a reference that only leads back to itself")
            seen.add(shape.name)
            shape = self._named[shape.name]
        return shape

    def _meet_plain(self, one: Shape, other: Shape) -> Shape:
        match one, other:
            case (Constants(), Strings(shortest=0, longest=None, pattern=None)):
                return constants_of(text for text in one.texts if text.startswith('"'))
            case (Constants(), _):
                return constants_of(json_text(value) for value in one.values if admits(other, value, self._named))
            case (_, Constants()):
                return self._meet_plain(other, one)
            case (Integers() | Numbers(), Integers() | Numbers()):
                return meet_numbers(one, other)
            case (Strings(), Strings()):
                return _meet_strings(one, other)
            case (Arrays(), Arrays()):
                return self._meet_arrays(one, other)
            case (Objects(), Objects()):
                return self._meet_objects(one, other)
            case _:
                return NOTHING

    def _meet_arrays(self, one: Arrays, other: Arrays) -> Shape:
        count = max(len(one.first), len(other.first))
        first = [self.meet(_item(one, index), _item(other, index)) for index in range(count)]
        fewest, most = max(one.fewest, other.fewest), _least(one.most, other.most)
        dead = next((index for index, shape in enumerate(first) if shape == NOTHING), None)
        rest = self.meet(one.rest, other.rest)
        return array_of(first[:dead], NOTHING if dead is not None else rest, fewest, most)

    def _meet_objects(self, one: Objects, other: Objects) -> Shape:
        names = list(dict.fromkeys(entry.name for entry in (*one.properties, *other.properties)))
        properties = [self._meet_property(name, one, other) for name in names]
        others = self.meet(one.others, other.others)
        if one.names is not None and other.names is not None and one.names != other.names and others != NOTHING:
            raise Undecided("two patterns for the names of properties")
        return object_of(
            properties, others, one.names or other.names, max(one.fewest, other.fewest), _least(one.most, other.most)
        )

    def _meet_property(self, name: str, one: Objects, other: Objects) -> Property:
        mine, theirs = _property(one, name), _property(other, name)
        return Property(name=name, shape=self.meet(mine.shape, theirs.shape), required=mine.required or theirs.required)

    def disjoint(self, one: Shape, other: Shape) -> bool:
        """Whether no value fits both. Only what is surely so counts."""
        return self._empty(self.meet(one, other), frozenset())

    def _empty(self, shape: Shape, open_names: frozenset[str]) -> bool:
        match shape:
            case Union(options=options):
                return all(self._empty(option, open_names) for option in options)
            case Named(name=name):
                return name in open_names or self._empty(self._named[name], open_names | {name})
            case Objects(properties=properties):
                return any(entry.required and self._empty(entry.shape, open_names) for entry in properties)
            case Arrays(first=first, fewest=fewest):
                return any(self._empty(inner, open_names) for inner in first[:fewest])
            case _:
                return False


def meet_numbers(one: Integers | Numbers, other: Integers | Numbers) -> Shape:
    """The numbers that both ranges have."""
    whole = isinstance(one, Integers) or isinstance(other, Integers)
    least, above = _lower(_lower_bound(one), _lower_bound(other))
    most, below = _upper(_upper_bound(one), _upper_bound(other))
    if not whole:
        return numbers_between(least, most, above=above, below=below)
    step = lcm(*(shape.step for shape in (one, other) if isinstance(shape, Integers)))
    return integers_between(least, most, above=above, below=below, step=step)


def _lower_bound(shape: Integers | Numbers) -> tuple[Fraction | None, bool]:
    least = None if shape.least is None else Fraction(shape.least)
    return least, isinstance(shape, Numbers) and shape.above


def _upper_bound(shape: Integers | Numbers) -> tuple[Fraction | None, bool]:
    most = None if shape.most is None else Fraction(shape.most)
    return most, isinstance(shape, Numbers) and shape.below


def _lower(one: tuple[Fraction | None, bool], other: tuple[Fraction | None, bool]) -> tuple[Fraction | None, bool]:
    if one[0] is None or other[0] is None:
        return other if one[0] is None else one
    return max((one[0], one[1]), (other[0], other[1]))


def _upper(one: tuple[Fraction | None, bool], other: tuple[Fraction | None, bool]) -> tuple[Fraction | None, bool]:
    if one[0] is None or other[0] is None:
        return other if one[0] is None else one
    most = min(one[0], other[0])
    return most, any(open_end for bound, open_end in (one, other) if bound == most)


def numbers_between(least: Fraction | None, most: Fraction | None, *, above: bool, below: bool) -> Shape:
    """The numbers of a range; nothing where it is empty."""
    if least is not None and most is not None and (least > most or (least == most and (above or below))):
        return NOTHING
    return Numbers(least=least, most=most, above=above and least is not None, below=below and most is not None)


def integers_between(
    least: Fraction | None, most: Fraction | None, *, above: bool, below: bool, step: int = 1
) -> Shape:
    """The whole numbers of a range; nothing where it is empty. Multiples in a range are constants, if they are few."""
    low = None if least is None else -(-least // 1) + (1 if above and least.denominator == 1 else 0)
    high = None if most is None else most // 1 - (1 if below and most.denominator == 1 else 0)
    if low is not None and high is not None:
        found = range(-(-low // step) * step, high + 1, step)
        if not found:
            return NOTHING
        if step != 1 and len(found) <= MOST_MULTIPLES:
            return constants_of(map(str, found))
    if step != 1 and ((low, high) != (None, None) or multiples_text(step) is None):
        raise Undecided(f"multiples of {step} that are neither few nor told by their last digits")
    return Integers(least=low, most=high, step=step)


def _meet_strings(one: Strings, other: Strings) -> Shape:
    if one.pattern is not None and other.pattern is not None and one.pattern != other.pattern:
        raise Undecided("two patterns for one string")
    return string_of(
        one.pattern or other.pattern, max(one.shortest, other.shortest), _least(one.longest, other.longest)
    )


def string_of(pattern: Expression | None, shortest: int, longest: int | None) -> Shape:
    """Strings with these bounds. Those of a pattern become a part of it."""
    if longest is not None and longest < shortest:
        return NOTHING
    if pattern is None:
        return Strings(shortest=shortest, longest=longest)
    said = of_length(pattern, shortest, inf if longest is None else longest)
    if said is None:
        raise Undecided("the pattern and the lengths of a string")
    return NOTHING if said == NEVER else Strings(pattern=said)


def array_of(first: Iterable[Shape], rest: Shape, fewest: int, most: int | None) -> Shape:
    """Arrays with these bounds, made as tight as their items are; nothing where they cannot be kept."""
    first = tuple(first)
    if rest == NOTHING:
        most = _least(most, len(first))
    if most is not None:
        first = first[:most]
    if most is not None and most < fewest:
        return NOTHING
    return Arrays(first=first, rest=NOTHING if most == len(first) else rest, fewest=fewest, most=most)


def object_of(
    properties: Iterable[Property], others: Shape, names: Expression | None, fewest: int, most: int | None
) -> Shape:
    """Objects with these properties; nothing where a required one cannot be, or too many are required."""
    properties = tuple(properties)
    required = sum(entry.required for entry in properties)
    possible = sum(entry.shape != NOTHING for entry in properties)
    if any(entry.required and entry.shape == NOTHING for entry in properties):
        return NOTHING
    if (most is not None and required > most) or (others == NOTHING and possible < fewest):
        return NOTHING
    if most is not None and others == NOTHING and most >= possible:
        most = None
    return Objects(
        properties=properties,
        others=others,
        names=names if others != NOTHING else None,
        fewest=fewest if fewest > required else 0,
        most=most,
    )


def _item(shape: Arrays, index: int) -> Shape:
    return shape.first[index] if index < len(shape.first) else shape.rest


def _property(shape: Objects, name: str) -> Property:
    """A listed property, or what the rule for the others makes of it."""
    for entry in shape.properties:
        if entry.name == name:
            return entry
    fits = shape.names is None or says(shape.names, name)
    return Property(name=name, shape=shape.others if fits else NOTHING, required=False)


def _least(one: int | None, other: int | None) -> int | None:
    known: list[Any] = [bound for bound in (one, other) if bound is not None]
    return min(known) if known else None
