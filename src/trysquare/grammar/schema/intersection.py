"""Intersection of shapes (`allOf`), and pruning of shapes without values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from math import inf, lcm
from typing import TypeAlias

from trysquare.grammar.schema import shapes
from trysquare.grammar.text.expressions import NEVER, Expression, json_text, reachable
from trysquare.grammar.text.ranges import multiples_text
from trysquare.grammar.text.regex import of_length, says

MOST_MULTIPLES = 1_000
MOST_ALTERNATIVES = 2_000
Bound: TypeAlias = tuple[Fraction | int | None, bool]
"""A bound, and whether it is exclusive."""


class Undecided(Exception):
    """Two shapes whose intersection cannot be computed, and why."""


class Intersecting:
    """Intersects shapes of one table of names, and detects cycles."""

    def __init__(self, named: Mapping[str, shapes.Shape]) -> None:
        self._named = named
        self._open: set[tuple[shapes.Shape, shapes.Shape]] = set()

    def meet(self, one: shapes.Shape, other: shapes.Shape) -> shapes.Shape:
        """The intersection of two shapes."""
        if one == other or isinstance(other, shapes.Anything):
            return one
        if isinstance(one, shapes.Anything):
            return other
        if isinstance(one, shapes.Named) or isinstance(other, shapes.Named):
            return self._meet_named(one, other)
        if len(shapes.options_of(one)) * len(shapes.options_of(other)) > MOST_ALTERNATIVES:
            raise Undecided("too many alternatives")
        if isinstance(one, shapes.Union):
            return shapes.any_of(self.meet(option, other) for option in one.options)
        if isinstance(other, shapes.Union):
            return shapes.any_of(self.meet(one, option) for option in other.options)
        return self._meet_plain(one, other)

    def _meet_named(self, one: shapes.Shape, other: shapes.Shape) -> shapes.Shape:
        pair = (one, other)
        if pair in self._open:
            raise Undecided("recursive schemas on both sides")
        self._open.add(pair)
        try:
            return self.meet(self._opened(one), self._opened(other))
        finally:
            self._open.remove(pair)

    def _opened(self, shape: shapes.Shape) -> shapes.Shape:
        """A shape with a name at its top resolved."""
        seen: set[str] = set()
        while isinstance(shape, shapes.Named):
            if shape.name in seen or shape.name not in self._named:
                raise Undecided("a reference to itself")
            seen.add(shape.name)
            shape = self._named[shape.name]
        return shape

    def _meet_plain(self, one: shapes.Shape, other: shapes.Shape) -> shapes.Shape:
        match one, other:
            case (shapes.Constants(), shapes.Strings(shortest=0, longest=None, pattern=None)):
                return shapes.constants_of(text for text in one.texts if text.startswith('"'))
            case (shapes.Constants(), _):
                return shapes.constants_of(
                    json_text(value) for value in one.values if shapes.admits(other, value, self._named)
                )
            case (_, shapes.Constants()):
                return self._meet_plain(other, one)
            case (shapes.Integers() | shapes.Numbers(), shapes.Integers() | shapes.Numbers()):
                return meet_numbers(one, other)
            case (shapes.Strings(), shapes.Strings()):
                return _meet_strings(one, other)
            case (shapes.Arrays(), shapes.Arrays()):
                return self._meet_arrays(one, other)
            case (shapes.Objects(), shapes.Objects()):
                return self._meet_objects(one, other)
            case _:
                return shapes.NOTHING

    def _meet_arrays(self, one: shapes.Arrays, other: shapes.Arrays) -> shapes.Shape:
        count = max(len(one.first), len(other.first))
        first = [self.meet(one.item(index), other.item(index)) for index in range(count)]
        fewest, most = max(one.fewest, other.fewest), _least(one.most, other.most)
        return array_of(first, self.meet(one.rest, other.rest), fewest, most)

    def _meet_objects(self, one: shapes.Objects, other: shapes.Objects) -> shapes.Shape:
        names = list(dict.fromkeys(entry.name for entry in (*one.properties, *other.properties)))
        properties = [self._meet_property(name, one, other) for name in names]
        others = self.meet(one.others, other.others)
        if one.names is not None and other.names is not None and one.names != other.names and others != shapes.NOTHING:
            raise Undecided("two patterns for the names of properties")
        fewest, most = max(one.fewest, other.fewest), _least(one.most, other.most)
        return object_of(properties, others, one.names or other.names, fewest, most)

    def _meet_property(self, name: str, one: shapes.Objects, other: shapes.Objects) -> shapes.Property:
        mine, theirs = _property(one, name), _property(other, name)
        both = self.meet(mine.shape, theirs.shape)
        return shapes.Property(name=name, shape=both, required=mine.required or theirs.required)


def meet_numbers(one: shapes.Integers | shapes.Numbers, other: shapes.Integers | shapes.Numbers) -> shapes.Shape:
    """The intersection of two ranges of numbers."""
    whole = isinstance(one, shapes.Integers) or isinstance(other, shapes.Integers)
    least, above = _tighter((one.least, one.above), (other.least, other.above), max)
    most, below = _tighter((one.most, one.below), (other.most, other.below), min)
    if not whole:
        return numbers_between(least, most, above=above, below=below)
    step = lcm(*(shape.step for shape in (one, other) if isinstance(shape, shapes.Integers)))
    return integers_between(least, most, above=above, below=below, step=step)


def _tighter(one: Bound, other: Bound, pick: Callable[[Iterable[Fraction]], Fraction]) -> tuple[Fraction | None, bool]:
    known = [(Fraction(bound), exclusive) for bound, exclusive in (one, other) if bound is not None]
    if not known:
        return None, False
    tightest = pick(bound for bound, _ in known)
    return tightest, any(exclusive for bound, exclusive in known if bound == tightest)


def numbers_between(least: Fraction | None, most: Fraction | None, *, above: bool, below: bool) -> shapes.Shape:
    """The numbers of a range; NOTHING where it is empty."""
    if least is not None and most is not None and (least > most or (least == most and (above or below))):
        return shapes.NOTHING
    return shapes.Numbers(least=least, most=most, above=above and least is not None, below=below and most is not None)


def integers_between(
    least: Fraction | None, most: Fraction | None, *, above: bool, below: bool, step: int = 1
) -> shapes.Shape:
    """The integers of a range; NOTHING where it is empty. Few multiples in a range become constants."""
    low = None if least is None else -(-least // 1) + (1 if above and least.denominator == 1 else 0)
    high = None if most is None else most // 1 - (1 if below and most.denominator == 1 else 0)
    if low is not None and high is not None:
        found = range(-(-low // step) * step, high + 1, step)
        if not found:
            return shapes.NOTHING
        if step != 1 and len(found) <= MOST_MULTIPLES:
            return shapes.constants_of(map(str, found))
    if step != 1 and ((low, high) != (None, None) or multiples_text(step) is None):
        raise Undecided(f"multiples of {step} that are neither few nor decided by their last digits")
    return shapes.Integers(least=low, most=high, step=step)


def _meet_strings(one: shapes.Strings, other: shapes.Strings) -> shapes.Shape:
    if one.pattern is not None and other.pattern is not None and one.pattern != other.pattern:
        raise Undecided("two patterns for one string")
    shortest, longest = max(one.shortest, other.shortest), _least(one.longest, other.longest)
    return string_of(one.pattern or other.pattern, shortest, longest)


def string_of(pattern: Expression | None, shortest: int, longest: int | None) -> shapes.Shape:
    """Strings with these bounds, which become part of a pattern."""
    if longest is not None and longest < shortest:
        return shapes.NOTHING
    if pattern is None:
        return shapes.Strings(shortest=shortest, longest=longest)
    bounded_pattern = of_length(pattern, shortest, inf if longest is None else longest)
    if bounded_pattern is None:
        raise Undecided("the pattern and the lengths of a string")
    return shapes.NOTHING if bounded_pattern == NEVER else shapes.Strings(pattern=bounded_pattern)


def array_of(first: Iterable[shapes.Shape], rest: shapes.Shape, fewest: int, most: int | None) -> shapes.Shape:
    """Arrays with these bounds, tightened by their items; NOTHING where that is impossible."""
    first = tuple(first)
    if shapes.NOTHING in first:
        first, rest = first[: first.index(shapes.NOTHING)], shapes.NOTHING
    if rest == shapes.NOTHING:
        most = _least(most, len(first))
    if most is not None:
        first = first[:most]
    if most is not None and most < fewest:
        return shapes.NOTHING
    return shapes.Arrays(first=first, rest=shapes.NOTHING if most == len(first) else rest, fewest=fewest, most=most)


def object_of(
    properties: Iterable[shapes.Property], others: shapes.Shape, names: Expression | None, fewest: int, most: int | None
) -> shapes.Shape:
    """Objects with these properties; NOTHING where a required one is impossible, or too many are required."""
    properties = tuple(properties)
    required = sum(entry.required for entry in properties)
    possible = sum(entry.shape != shapes.NOTHING for entry in properties)
    impossible = any(entry.required and entry.shape == shapes.NOTHING for entry in properties)
    if impossible or (most is not None and required > most) or (others == shapes.NOTHING and possible < fewest):
        return shapes.NOTHING
    if others == shapes.NOTHING:
        names, most = None, None if most is None or most >= possible else most
    fewest = fewest if fewest > required else 0
    return shapes.Objects(properties=properties, others=others, names=names, fewest=fewest, most=most)


def _property(shape: shapes.Objects, name: str) -> shapes.Property:
    """A listed property, or an unlisted one by the rule for the others."""
    for entry in shape.properties:
        if entry.name == name:
            return entry
    fits = shape.names is None or says(shape.names, name)
    return shapes.Property(name=name, shape=shape.others if fits else shapes.NOTHING, required=False)


def _least(one: int | None, other: int | None) -> int | None:
    return min((bound for bound in (one, other) if bound is not None), default=None)


def circles(named: Mapping[str, shapes.Shape]) -> str | None:
    """A name that refers to itself through unions and references alone."""
    graph = {
        name: frozenset(option.name for option in shapes.options_of(shape) if isinstance(option, shapes.Named))
        for name, shape in named.items()
    }
    return next((name for name in graph if name in reachable(graph, graph[name])), None)


def fitting_names(named: Mapping[str, shapes.Shape]) -> set[str]:
    """The names with shapes that some finite value matches."""
    fitting: set[str] = set()
    while more := {name for name, shape in named.items() if name not in fitting and fits_some(shape, fitting)}:
        fitting |= more
    return fitting


def pruned(tree: shapes.ShapeTree, fitting: set[str]) -> shapes.ShapeTree:
    """The tree without shapes that no finite value matches, which are those of all but the fitting names."""
    kept = {name: _pruned(shape, fitting) for name, shape in tree.named.items() if name in fitting}
    return shapes.ShapeTree(root=_pruned(tree.root, fitting), named=kept)


def fits_some(shape: shapes.Shape, fitting: set[str]) -> bool:
    """Whether some value matches, given the names that are known to have one."""
    match shape:
        case shapes.Named(name=name):
            return name in fitting
        case shapes.Union(options=options):
            return any(fits_some(option, fitting) for option in options)
        case shapes.Arrays(first=first, rest=rest, fewest=fewest):
            enough = fewest <= len(first) or fits_some(rest, fitting)
            return enough and all(fits_some(inner, fitting) for inner in first[:fewest])
        case shapes.Objects(properties=properties):
            return all(fits_some(entry.shape, fitting) for entry in properties if entry.required)
        case _:
            return True


def _pruned(shape: shapes.Shape, fitting: set[str]) -> shapes.Shape:
    match shape:
        case shapes.Named(name=name):
            return shape if name in fitting else shapes.NOTHING
        case shapes.Union(options=options):
            return shapes.any_of(_pruned(option, fitting) for option in options)
        case shapes.Arrays():
            first = [_pruned(inner, fitting) for inner in shape.first]
            return array_of(first, _pruned(shape.rest, fitting), shape.fewest, shape.most)
        case shapes.Objects():
            entries = [replace(entry, shape=_pruned(entry.shape, fitting)) for entry in shape.properties]
            return object_of(entries, _pruned(shape.others, fitting), shape.names, shape.fewest, shape.most)
        case _:
            return shape
