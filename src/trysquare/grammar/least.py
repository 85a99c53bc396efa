"""The shortest texts of shapes: what has to be kept free so that an answer can be completed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trysquare.grammar.expressions import length_of
from trysquare.grammar.json_text import json_text, written
from trysquare.grammar.shapes import (
    NOTHING,
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
)

NEVER_ENDS = 1 << 40
"""The length of a text that cannot be written, such as one of a shape that needs itself."""


class Lengths:
    """The shortest texts of shapes, in bytes, each found once."""

    def __init__(self, named: Mapping[str, Shape]) -> None:
        self._named = named
        self._found: dict[Shape, int] = {}
        self._open: set[str] = set()

    def least(self, shape: Shape) -> int:
        """How many bytes the shortest text of a shape has."""
        if shape not in self._found:
            found = self._least(shape)
            if self._open:
                # Found while a shape that contains it was still open, so it may be too long to be kept.
                return found
            self._found[shape] = found
        return self._found[shape]

    def least_after(self, properties: tuple[Property, ...]) -> int:
        """How many bytes the required ones of further properties take, each with its comma."""
        return sum(self._entry(each) for each in properties if each.required)

    def _least(self, shape: Shape) -> int:
        match shape:
            case Constants(texts=texts):
                return min(len(text.encode()) for text in texts)
            case Strings():
                return self._string(shape)
            case Integers(least=least, most=most):
                return _shortest_number(least, most)
            case Numbers(least=least, most=most):
                return _shortest_number(least, most) + (0 if _holds_whole(shape) else 18)
            case Arrays():
                return self._array(shape)
            case Objects():
                return self._object(shape)
            case Union(options=options):
                return min(map(self.least, options), default=NEVER_ENDS)
            case Named(name=name):
                return self._of_name(name)
            case _:
                return 1

    def _string(self, shape: Strings) -> int:
        if shape.pattern is None:
            return 2 + shape.shortest
        fewest, _ = length_of(written(shape.pattern))
        # Characters are counted, not bytes, and one has four bytes at most.
        return 2 + 4 * max(shape.shortest, fewest)

    def _array(self, shape: Arrays) -> int:
        items = [*shape.first, *[shape.rest] * max(shape.fewest - len(shape.first), 0)][: shape.fewest]
        return 2 + sum(map(self.least, items)) + max(len(items) - 1, 0)

    def _object(self, shape: Objects) -> int:
        further = max(shape.fewest - sum(each.required for each in shape.properties), 0)
        optional = [self._entry(each) for each in shape.properties if not each.required]
        if shape.others != NOTHING:
            # Names that are not listed must differ from one another, so they take a few characters.
            optional += [len(',"xx":') + len(str(further)) + self.least(shape.others)] * further
        added = sum(sorted(optional)[:further]) if len(optional) >= further else NEVER_ENDS
        return 2 + max(self.least_after(shape.properties) + added - 1, 0)

    def _entry(self, each: Property) -> int:
        """How many bytes a property takes, with its comma."""
        return 1 + len(key_text(each).encode()) + self.least(each.shape)

    def _of_name(self, name: str) -> int:
        if name in self._open:
            return NEVER_ENDS
        self._open.add(name)
        try:
            return self.least(self._named[name])
        finally:
            self._open.discard(name)


def _shortest_number(least: object, most: object) -> int:
    return max(len(str(bound)) for bound in (least, most, 0) if bound is not None)


def _holds_whole(shape: Numbers) -> bool:
    if shape.least is None or shape.most is None:
        return True
    lowest = shape.least.__floor__() + 1 if shape.above else shape.least.__ceil__()
    highest = shape.most.__ceil__() - 1 if shape.below else shape.most.__floor__()
    return lowest <= highest


def key_text(each: Property) -> str:
    """The name of a property as it is written, with its colon."""
    return json_text(each.name) + ":"


def common_beginning(texts: Iterable[str]) -> str:
    """The longest text with which all texts begin."""
    first, last = min(texts := tuple(texts)), max(texts)
    same = next((place for place, char in enumerate(first) if char != last[place]), len(first))
    return first[:same]


def is_closed(shape: Objects) -> bool:
    """Whether an object has its listed properties only, and nothing else is asked of their number."""
    required = sum(each.required for each in shape.properties)
    return shape.others == NOTHING and shape.fewest <= required and shape.most is None
