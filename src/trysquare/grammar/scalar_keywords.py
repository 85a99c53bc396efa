"""Scalar keywords: what a schema says about numbers and strings."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any

from trysquare.core.types import JsonObject
from trysquare.grammar.formats import PATTERNS, STORED, WHOLE
from trysquare.grammar.intersection import Undecided, integers_between, meet_numbers, numbers_between, string_of
from trysquare.grammar.json_text import json_text
from trysquare.grammar.patterns import PatternRefused, read_pattern
from trysquare.grammar.ranges import split_number
from trysquare.grammar.refusals import Unsupported, at
from trysquare.grammar.shapes import Integers, Numbers, Shape

NUMBER_FORMATS = STORED | WHOLE.keys()


def read_numbers(schema: JsonObject, pointer: str, *, whole: bool) -> Shape:
    """The numbers that a schema allows, only whole ones or all."""
    least, above = _bound(schema, pointer, "minimum", "exclusiveMinimum")
    most, below = _bound(schema, pointer, "maximum", "exclusiveMaximum")
    step = _step(schema, pointer, whole=whole)
    if whole or step is not None:
        try:
            return _in_format(integers_between(least, most, above=above, below=below, step=step or 1), schema)
        except Undecided as error:
            raise Unsupported("multipleOf", at(pointer, "multipleOf"), f"it asks for {error}") from error
    _check_digits(least, at(pointer, "minimum"))
    _check_digits(most, at(pointer, "maximum"))
    return _in_format(numbers_between(least, most, above=above, below=below), schema)


def _in_format(shape: Shape, schema: JsonObject) -> Shape:
    name = schema.get("format")
    if not isinstance(shape, Integers | Numbers) or not isinstance(name, str) or name not in WHOLE:
        return shape
    least, most = WHOLE[name]
    return meet_numbers(shape, Integers(least=least, most=most)) if isinstance(shape, Integers) else shape


def exact_number(value: Any, pointer: str) -> Fraction:
    """A number of a schema as it is written there."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise Unsupported(pointer.rpartition("/")[2], pointer, "it has to be a number")
    return Fraction(Decimal(str(value)))


def _bound(schema: JsonObject, pointer: str, plain: str, exclusive: str) -> tuple[Fraction | None, bool]:
    """The tighter of a bound and its exclusive form, which older drafts write as true beside the bound."""
    value, strict = schema.get(plain), schema.get(exclusive)
    bound = None if value is None else exact_number(value, at(pointer, plain))
    if strict is None or isinstance(strict, bool):
        return bound, bool(strict) and bound is not None
    open_bound = exact_number(strict, at(pointer, exclusive))
    if bound is None:
        return open_bound, True
    tighter = max(bound, open_bound) if plain == "minimum" else min(bound, open_bound)
    return tighter, tighter == open_bound


def _step(schema: JsonObject, pointer: str, *, whole: bool) -> int | None:
    if "multipleOf" not in schema:
        return None
    step = exact_number(schema["multipleOf"], at(pointer, "multipleOf"))
    if step <= 0:
        raise Unsupported("multipleOf", at(pointer, "multipleOf"), "it has to be above zero")
    if whole:
        # A whole number is a multiple of a fraction p/q in lowest terms where it is one of p.
        return step.numerator
    if step.denominator != 1:
        raise Unsupported("multipleOf", at(pointer, "multipleOf"), "it is not a whole number")
    return step.numerator


def _check_digits(bound: Fraction | None, pointer: str) -> None:
    try:
        split_number(abs(bound or Fraction(0)))
    except ValueError as error:
        raise Unsupported(pointer.rpartition("/")[2], pointer, str(error)) from error


def read_strings(schema: JsonObject, pointer: str) -> Shape:
    """The strings that a schema allows."""
    shortest = read_count(schema, pointer, "minLength") or 0
    longest = read_count(schema, pointer, "maxLength")
    pattern = schema.get("pattern")
    if pattern is not None and _format_pattern(schema, pointer) is not None:
        raise Unsupported("format", at(pointer, "format"), "the string has a pattern of its own")
    if pattern is not None and not isinstance(pattern, str):
        raise Unsupported("pattern", at(pointer, "pattern"), "it has to be a text")
    keyword = "pattern" if pattern is not None else "format"
    text = pattern if pattern is not None else _format_pattern(schema, pointer)
    if text is None:
        return string_of(None, shortest, longest)
    try:
        return string_of(read_pattern(text), shortest, longest)
    except PatternRefused as error:
        raise Unsupported(keyword, at(pointer, keyword), f"{error} cannot be read in {json_text(text)}") from error
    except Undecided as error:
        raise Unsupported(keyword, at(pointer, keyword), f"{error} together make too many cases") from error


def _format_pattern(schema: JsonObject, pointer: str) -> str | None:
    name = schema.get("format")
    if name is None or (isinstance(name, str) and name in NUMBER_FORMATS):
        return None
    if not isinstance(name, str) or name not in PATTERNS:
        raise Unsupported("format", at(pointer, "format"), f"the format {json_text(name)} is not known")
    return PATTERNS[name]


def read_count(schema: JsonObject, pointer: str, keyword: str) -> int | None:
    """A count such as `maxLength`."""
    if keyword not in schema:
        return None
    value = exact_number(schema[keyword], at(pointer, keyword))
    if value.denominator != 1 or value < 0:
        raise Unsupported(keyword, at(pointer, keyword), "it has to be a whole number that is not negative")
    return value.numerator
