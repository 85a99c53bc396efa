"""Shapes of JSON values, and membership."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any, ClassVar, TypeAlias, cast

from trysquare.grammar.text.expressions import Expression, json_text
from trysquare.grammar.text.regex import says


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
    """Integers of a range that are multiples of `step`."""

    least: int | None = None
    most: int | None = None
    step: int = 1
    above: ClassVar[bool] = False
    below: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Numbers:
    """Numbers of a range."""

    least: Fraction | None = None
    most: Fraction | None = None
    above: bool = False
    """Whether `least` is exclusive."""
    below: bool = False
    """Whether `most` is exclusive."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Strings:
    """Strings, counted in characters."""

    shortest: int = 0
    longest: int | None = None
    pattern: Expression | None = None
    """Pattern of the whole string."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrays:
    """Arrays whose first items have shapes of their own."""

    first: tuple[Shape, ...] = ()
    rest: Shape
    fewest: int = 0
    most: int | None = None

    def item(self, index: int) -> Shape:
        return self.first[index] if index < len(self.first) else self.rest


@dataclass(frozen=True, kw_only=True, slots=True)
class Property:
    """A listed property; with the shape NOTHING it must be absent."""

    name: str
    shape: Shape
    required: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Objects:
    """Objects with listed properties in their order, and then others."""

    properties: tuple[Property, ...] = ()
    others: Shape
    """The shape of unlisted properties; NOTHING where there are none."""
    names: Expression | None = None
    """Pattern of unlisted names; None is any."""
    fewest: int = 0
    most: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Union:
    """Any of several; without options nothing matches."""

    options: tuple[Shape, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Named:
    """A reference into the tree's table, so that a shape can contain itself."""

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
    """The union of shapes, flat, each once, with constants merged."""
    found: dict[Shape, None] = {}
    for option in options:
        if option == ANYTHING:
            return ANYTHING
        found.update(dict.fromkeys(options_of(option)))
    # All constants are one option, at the position of the first.
    texts = [text for option in found if isinstance(option, Constants) for text in option.texts]
    first = next((option for option in found if isinstance(option, Constants)), None)
    others = (option for option in found if option is first or not isinstance(option, Constants))
    gathered = tuple(constants_of(texts) if option is first else option for option in others)
    return gathered[0] if len(gathered) == 1 else Union(options=gathered)


def constants_of(texts: Iterable[str]) -> Shape:
    """The constants with these texts; NOTHING without any."""
    kept = tuple(dict.fromkeys(texts))
    return Constants(texts=kept) if kept else NOTHING


def options_of(shape: Shape) -> tuple[Shape, ...]:
    """The options of a union, or the shape itself."""
    return shape.options if isinstance(shape, Union) else (shape,)


def admits(shape: Shape, value: Any, named: Mapping[str, Shape]) -> bool:
    """Whether a value matches a shape, in any order of its properties."""
    match shape:
        case Anything():
            return True
        case Constants():
            return any(same_value(value, constant) for constant in shape.values)
        case Integers() | Numbers():
            is_number = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
            return is_number and _in_range(shape, value)
        case Strings(pattern=pattern):
            fits = isinstance(value, str) and _fits_count(value, shape.shortest, shape.longest)
            return fits and (pattern is None or says(pattern, value))
        case Arrays():
            items = cast(list[Any], value)
            fits = isinstance(value, list) and _fits_count(items, shape.fewest, shape.most)
            return fits and all(admits(shape.item(index), item, named) for index, item in enumerate(items))
        case Objects():
            return isinstance(value, dict) and _fits_object(shape, value, named)  # pyright: ignore[reportUnknownArgumentType]
        case Union(options=options):
            return any(admits(option, value, named) for option in options)
        case Named(name=name):
            return admits(named[name], value, named)


def same_value(one: Any, other: Any) -> bool:
    """JSON Schema equality, where 1 equals 1.0 and true differs from 1."""
    return sorted_text(one) == sorted_text(other)


def sorted_text(value: Any) -> str:
    """Canonical text: equal for equal values."""
    if isinstance(value, dict):
        pairs = sorted((json_text(key), sorted_text(inner)) for key, inner in value.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return "{" + ",".join(f"{key}:{inner}" for key, inner in pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(sorted_text, value)) + "]"  # pyright: ignore[reportUnknownArgumentType]
    return json_text(whole(value))


def whole(value: Any) -> Any:
    """A number without a fraction as an integer; anything else unchanged."""
    return int(value) if isinstance(value, float) and isfinite(value) and value.is_integer() else value


def _in_range(shape: Integers | Numbers, value: float) -> bool:
    exact = Fraction(str(value))
    if isinstance(shape, Integers) and (exact.denominator != 1 or exact % shape.step):
        return False
    too_low = shape.least is not None and (exact < shape.least or (shape.above and exact == shape.least))
    too_high = shape.most is not None and (exact > shape.most or (shape.below and exact == shape.most))
    return not too_low and not too_high


def _fits_count(value: Sized, fewest: int, most: int | None) -> bool:
    return fewest <= len(value) and (most is None or len(value) <= most)


def _fits_object(shape: Objects, value: dict[str, Any], named: Mapping[str, Shape]) -> bool:
    listed = {entry.name: entry for entry in shape.properties}
    missing = any(entry.required and entry.name not in value for entry in shape.properties)
    if missing or not _fits_count(value, shape.fewest, shape.most):
        return False
    return all(
        admits(listed[name].shape, inner, named)
        if name in listed
        else (shape.names is None or says(shape.names, name)) and admits(shape.others, inner, named)
        for name, inner in value.items()
    )
