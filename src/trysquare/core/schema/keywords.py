"""Assertion keywords: those that look at one value by itself, each compiled to a test. Patterns match in linear time.

A keyword whose own value makes no sense gives no test, nor does a pattern that could hang or that Rust reads otherwise
than JavaScript: what cannot be checked here is left to the server.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias, cast

from pydantic_core import SchemaError, SchemaValidator, core_schema

from trysquare.core.json import JsonObject, as_list
from trysquare.core.text import is_encodable

_LONGEST_PATTERN, _LONGEST_TEXT, _MOST_REPEATS = 500, 10_000, 1_000
_REPEATS = re.compile(r"\{(\d+)(?:,(\d*))?\}")
# Rust alone reads these as sets within sets.
_READ_OTHERWISE = re.compile(r"&&|--|~~|\[[^\]\\]*\[")


@lru_cache(maxsize=2_000)
def text_test(pattern: str) -> Callable[[str], bool] | None:
    """The test for a pattern; None if it cannot be checked safely."""
    if len(pattern) > _LONGEST_PATTERN or _READ_OTHERWISE.search(pattern) or _repeats(pattern) > _MOST_REPEATS:
        return None
    try:
        validator = SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError:
        return None
    # Rust does not accept a lone surrogate.
    return lambda text: len(text) > _LONGEST_TEXT or validator.isinstance_python(text) or not is_encodable(text)


def _repeats(pattern: str) -> int:
    """How much a pattern grows when its counted repeats are written out."""
    counts = (max(int(least[:9]), int((most or "0")[:9])) for least, most in _REPEATS.findall(pattern))
    return math.prod(max(count, 1) for count in counts)


Test: TypeAlias = Callable[[Any], bool]
_Maker: TypeAlias = Callable[[Any, JsonObject], Test | None]

TYPES: dict[str, Test] = {
    "string": lambda value: type(value) is str,
    "integer": lambda value: type(value) is int or (type(value) is float and value.is_integer()),
    "number": lambda value: type(value) is int or type(value) is float,
    "boolean": lambda value: type(value) is bool,
    "null": lambda value: value is None,
    "array": lambda value: type(value) is list,
    "object": lambda value: type(value) is dict,
}
_NEARLY = 1e-9


def assertion(keyword: str, given: Any, schema: JsonObject) -> Test | None:
    """The test of one keyword; None if it asserts nothing, or cannot be read."""
    make = _MAKERS.get(keyword)
    return None if make is None else make(given, schema)


def key_of(value: Any) -> Any:
    """A key that is the same for equal JSON values: `1` and `1.0` are one number, `true` is none."""
    if isinstance(value, dict):
        return "object", frozenset((name, key_of(part)) for name, part in cast(JsonObject, value).items())
    if isinstance(value, list):
        return "array", tuple(key_of(part) for part in cast(list[Any], value))
    return isinstance(value, bool), value


def _type(given: Any, schema: JsonObject) -> Test | None:
    kinds: list[Any] = as_list(given) or [given]
    if not all(isinstance(kind, str) and kind in TYPES for kind in kinds):
        return None
    tests = [TYPES[kind] for kind in kinds]
    return tests[0] if len(tests) == 1 else lambda value: any(test(value) for test in tests)


def _enum(given: Any, schema: JsonObject) -> Test | None:
    choices = as_list(given)
    if not choices:
        return None
    if all(type(choice) is str for choice in choices):
        texts = frozenset(choices)
        return lambda value: type(value) is str and value in texts
    keys = {key_of(choice) for choice in choices}
    return lambda value: key_of(value) in keys


def _pattern(given: Any, schema: JsonObject) -> Test | None:
    test = text_test(given) if isinstance(given, str) else None
    return None if test is None else lambda value: type(value) is not str or test(value)


def _compare_size(kind: type, compare: Callable[[Any, Any], bool]) -> _Maker:
    def make(given: Any, schema: JsonObject) -> Test | None:
        return (lambda value: type(value) is not kind or compare(len(value), given)) if _is_number(given) else None

    return make


def _compare(compare: Callable[[Any, Any], bool], exclusive: str = "") -> _Maker:
    """Compare numbers; `exclusive` is the draft-4 keyword that excludes the limit itself."""
    stricter = {operator.ge: operator.gt, operator.le: operator.lt}

    def make(given: Any, schema: JsonObject) -> Test | None:
        test = stricter[compare] if schema.get(exclusive) is True else compare
        return (lambda value: not _is_number(value) or test(value, given)) if _is_number(given) else None

    return make


def _multiple(given: Any, schema: JsonObject) -> Test | None:
    return (lambda value: not _is_number(value) or _divides(given, value)) if _is_number(given) and given else None


def _divides(part: float, value: float) -> bool:
    if type(part) is int and type(value) is int:
        return value % part == 0
    try:
        times = value / part
    except OverflowError:
        return True
    # 0.3 is meant to be three times 0.1, whatever floating point makes of it.
    return abs(times) == float("inf") or abs(times - round(times)) < _NEARLY


def _unique(given: Any, schema: JsonObject) -> Test | None:
    if given is not True:
        return None
    return lambda value: len({key_of(part) for part in as_list(value)}) == len(as_list(value))


def _is_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and value == value)


_MAKERS: dict[str, _Maker] = {
    "type": _type,
    "enum": _enum,
    "const": lambda given, schema: _enum([given], schema),
    "pattern": _pattern,
    "minLength": _compare_size(str, operator.ge),
    "maxLength": _compare_size(str, operator.le),
    "minItems": _compare_size(list, operator.ge),
    "maxItems": _compare_size(list, operator.le),
    "minProperties": _compare_size(dict, operator.ge),
    "maxProperties": _compare_size(dict, operator.le),
    "minimum": _compare(operator.ge, "exclusiveMinimum"),
    "maximum": _compare(operator.le, "exclusiveMaximum"),
    "exclusiveMinimum": _compare(operator.gt),
    "exclusiveMaximum": _compare(operator.lt),
    "multipleOf": _multiple,
    "uniqueItems": _unique,
}
