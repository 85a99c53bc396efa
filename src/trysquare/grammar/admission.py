"""Admission: whether a value has a shape."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import isfinite
from typing import Any

from trysquare.grammar.json_text import json_text
from trysquare.grammar.regex_text import says
from trysquare.grammar.shapes import (
    Anything,
    Arrays,
    Constants,
    Integers,
    Named,
    Numbers,
    Objects,
    Shape,
    Strings,
    Union,
)


def admits(shape: Shape, value: Any, named: Mapping[str, Shape]) -> bool:
    """Whether the value is one that the shape allows, whatever the order of its properties."""
    match shape:
        case Anything():
            return True
        case Constants():
            return any(same_value(value, constant) for constant in shape.values)
        case Integers() | Numbers():
            return _is_number(value) and _in_range(shape, value)
        case Strings():
            return isinstance(value, str) and _fits_string(shape, value)
        case Arrays():
            return isinstance(value, list) and _fits_array(shape, value, named)  # pyright: ignore[reportUnknownArgumentType]
        case Objects():
            return isinstance(value, dict) and _fits_object(shape, value, named)  # pyright: ignore[reportUnknownArgumentType]
        case Union(options=options):
            return any(admits(option, value, named) for option in options)
        case Named(name=name):
            return admits(named[name], value, named)


def same_value(one: Any, other: Any) -> bool:
    """Whether two values are the same for JSON Schema, where 1 and 1.0 are, and true and 1 are not."""
    return sorted_text(one) == sorted_text(other)


def sorted_text(value: Any) -> str:
    """A text that is equal for values that are the same."""
    if isinstance(value, dict):
        pairs = sorted((json_text(key), sorted_text(inner)) for key, inner in value.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return "{" + ",".join(f"{key}:{inner}" for key, inner in pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(sorted_text, value)) + "]"  # pyright: ignore[reportUnknownArgumentType]
    return json_text(whole(value))


def whole(value: Any) -> Any:
    """A number without a fraction as an integer; anything else as it is."""
    return int(value) if isinstance(value, float) and isfinite(value) and value.is_integer() else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _in_range(shape: Integers | Numbers, value: float) -> bool:
    exact = Fraction(str(value))
    if isinstance(shape, Integers) and (exact.denominator != 1 or exact % shape.step):
        return False
    above, below = (shape.above, shape.below) if isinstance(shape, Numbers) else (False, False)
    too_low = shape.least is not None and (exact < shape.least or (above and exact == shape.least))
    too_high = shape.most is not None and (exact > shape.most or (below and exact == shape.most))
    return not too_low and not too_high


def _fits_string(shape: Strings, value: str) -> bool:
    long_enough = len(value) >= shape.shortest and (shape.longest is None or len(value) <= shape.longest)
    return long_enough and (shape.pattern is None or says(shape.pattern, value))


def _fits_array(shape: Arrays, value: list[Any], named: Mapping[str, Shape]) -> bool:
    if len(value) < shape.fewest or (shape.most is not None and len(value) > shape.most):
        return False
    shapes = [*shape.first, *[shape.rest] * max(0, len(value) - len(shape.first))]
    return all(admits(inner, item, named) for inner, item in zip(shapes, value, strict=False))


def _fits_object(shape: Objects, value: dict[str, Any], named: Mapping[str, Shape]) -> bool:
    if len(value) < shape.fewest or (shape.most is not None and len(value) > shape.most):
        return False
    listed = {entry.name: entry for entry in shape.properties}
    if any(entry.required and entry.name not in value for entry in shape.properties):
        return False
    return all(
        admits(listed[name].shape, inner, named) if name in listed else _fits_other(shape, name, inner, named)
        for name, inner in value.items()
    )


def _fits_other(shape: Objects, name: str, value: Any, named: Mapping[str, Shape]) -> bool:
    return (shape.names is None or says(shape.names, name)) and admits(shape.others, value, named)
