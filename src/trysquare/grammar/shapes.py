"""Shapes: the values that a schema allows, after everything that combines schemas has been worked out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from trysquare.grammar.expressions import Expression


@dataclass(frozen=True, kw_only=True, slots=True)
class Anything:
    """Every JSON value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Constants:
    """One of these values, each as its compact JSON text."""

    texts: tuple[str, ...]

    @property
    def values(self) -> Iterator[Any]:
        return (json.loads(text) for text in self.texts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Integers:
    """Whole numbers of a range that are multiples of `step`."""

    least: int | None = None
    most: int | None = None
    step: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Numbers:
    """Numbers of a range, whole or not."""

    least: Fraction | None = None
    most: Fraction | None = None
    above: bool = False
    """Whether `least` itself does not belong to the range."""
    below: bool = False
    """Whether `most` itself does not belong to the range."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Strings:
    """Strings, counted in characters."""

    shortest: int = 0
    longest: int | None = None
    pattern: Expression | None = None
    """What the string says, from its first to its last character."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrays:
    """Arrays whose first items have shapes of their own."""

    first: tuple[Shape, ...] = ()
    rest: Shape
    fewest: int = 0
    most: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Property:
    """A property that is listed in a schema; one that fits nothing may not be there."""

    name: str
    shape: Shape
    required: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Objects:
    """Objects with listed properties in their order, and then others."""

    properties: tuple[Property, ...] = ()
    others: Shape
    """The shape of properties that are not listed; nothing where there are none."""
    names: Expression | None = None
    """What the names of the others are; None is anything."""
    fewest: int = 0
    most: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Union:
    """Any of several; without any, nothing fits."""

    options: tuple[Shape, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Named:
    """What stands under this name in the tree's table, so that a shape can contain itself."""

    name: str


Shape: TypeAlias = Anything | Constants | Integers | Numbers | Strings | Arrays | Objects | Union | Named
ANYTHING = Anything()
NOTHING = Union(options=())
NULL = Constants(texts=("null",))
BOOLEANS = Constants(texts=("true", "false"))


@dataclass(frozen=True, kw_only=True, slots=True)
class ShapeTree:
    """A shape with those it refers to."""

    root: Shape
    named: Mapping[str, Shape]


def any_of(options: Iterable[Shape]) -> Shape:
    """The union of shapes, flat, each once, with constants gathered."""
    found: dict[Shape, None] = {}
    for option in options:
        if option == ANYTHING:
            return ANYTHING
        inner = option.options if isinstance(option, Union) else (option,)
        found.update(dict.fromkeys(inner))
    gathered = _gathered(tuple(found))
    return gathered[0] if len(gathered) == 1 else Union(options=gathered)


def _gathered(options: tuple[Shape, ...]) -> tuple[Shape, ...]:
    """The options with all constants in one, where the first of them stood."""
    texts = [text for option in options if isinstance(option, Constants) for text in option.texts]
    constants = constants_of(texts)
    first = next((option for option in options if isinstance(option, Constants)), None)
    return tuple(
        constants if option is first else option
        for option in options
        if option is first or not isinstance(option, Constants)
    )


def constants_of(texts: Iterable[str]) -> Shape:
    """The constants with these texts; without any, nothing."""
    kept = tuple(dict.fromkeys(texts))
    return Constants(texts=kept) if kept else NOTHING


def options_of(shape: Shape) -> tuple[Shape, ...]:
    """The alternatives that a shape is made of: itself, unless it is a union."""
    return shape.options if isinstance(shape, Union) else (shape,)
