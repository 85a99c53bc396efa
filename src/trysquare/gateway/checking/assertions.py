"""Assertions: the keywords of a schema that look at one value by itself, each made into a test.

A keyword whose own value makes no sense gives no test: what cannot be read is left to the server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from trysquare.catalog.schema_parts import as_list
from trysquare.core.types import JsonObject
from trysquare.gateway.checking.linear_patterns import text_test

Test: TypeAlias = Callable[[Any], bool]

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


def _const(given: Any, schema: JsonObject) -> Test:
    key = key_of(given)
    return lambda value: key_of(value) == key


def _pattern(given: Any, schema: JsonObject) -> Test | None:
    test = text_test(given) if isinstance(given, str) else None
    return None if test is None else lambda value: type(value) is not str or test(value)


def _least_size(kind: type) -> Callable[[Any, JsonObject], Test | None]:
    def make(given: Any, schema: JsonObject) -> Test | None:
        return (lambda value: type(value) is not kind or len(value) >= given) if _is_number(given) else None

    return make


def _most_size(kind: type) -> Callable[[Any, JsonObject], Test | None]:
    def make(given: Any, schema: JsonObject) -> Test | None:
        return (lambda value: type(value) is not kind or len(value) <= given) if _is_number(given) else None

    return make


def _minimum(given: Any, schema: JsonObject) -> Test | None:
    if schema.get("exclusiveMinimum") is True:
        return _above(given, schema)
    return (lambda value: not _is_number(value) or value >= given) if _is_number(given) else None


def _maximum(given: Any, schema: JsonObject) -> Test | None:
    if schema.get("exclusiveMaximum") is True:
        return _below(given, schema)
    return (lambda value: not _is_number(value) or value <= given) if _is_number(given) else None


def _above(given: Any, schema: JsonObject) -> Test | None:
    return (lambda value: not _is_number(value) or value > given) if _is_number(given) else None


def _below(given: Any, schema: JsonObject) -> Test | None:
    return (lambda value: not _is_number(value) or value < given) if _is_number(given) else None


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


_MAKERS: dict[str, Callable[[Any, JsonObject], Test | None]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "pattern": _pattern,
    "minLength": _least_size(str),
    "maxLength": _most_size(str),
    "minItems": _least_size(list),
    "maxItems": _most_size(list),
    "minProperties": _least_size(dict),
    "maxProperties": _most_size(dict),
    "minimum": _minimum,
    "maximum": _maximum,
    "exclusiveMinimum": _above,
    "exclusiveMaximum": _below,
    "multipleOf": _multiple,
    "uniqueItems": _unique,
}
