"""Arguments made from a tool's own schema: valid ones, and ones that are wrong in one place."""

from __future__ import annotations

import string
from collections.abc import Callable
from random import Random
from typing import Any, cast

from tests.fuzz.values import NUMBERS, TEXTS, random_value
from trysquare.core.json import JsonObject

_DEPTH = 4
_FORMATS = {
    "date": "2026-07-28",
    "date-time": "2026-07-28T12:00:00Z",
    "uuid": "0b8a1c36-8a4c-4a7e-9a55-0b8a1c368a4c",
    "path": "some/where",
}


def fitting(random: Random, schema: JsonObject) -> JsonObject:
    """Arguments as the schema wants them, as far as its common keywords say."""
    return _object(random, schema, schema, _DEPTH)


def nearly_fitting(random: Random, schema: JsonObject) -> JsonObject:
    """Arguments that fit but for a change or two: a part dropped, renamed, replaced, added or wrapped."""
    made = fitting(random, schema)
    for _ in range(random.randrange(1, 3)):
        made = random.choice(_CHANGES)(random, made, random.choice((*made, "")))
    return made


def _value(random: Random, schema: JsonObject, root: JsonObject, depth: int) -> Any:
    if "$ref" in schema:
        return _value(random, _resolved(schema["$ref"], root), root, depth)
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return _value(random, random.choice(schema[union]), root, depth)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return random.choice(schema["enum"])
    make = _BY_TYPE.get(str(schema.get("type")))
    return random_value(random) if make is None else make(random, schema, root, depth)


def _resolved(reference: str, root: JsonObject) -> JsonObject:
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found


def _object(random: Random, schema: JsonObject, root: JsonObject, depth: int) -> JsonObject:
    properties = cast("dict[str, JsonObject]", schema.get("properties", {}))
    required = schema.get("required", ())
    wanted = [name for name in properties if name in required or (depth > 0 and random.randrange(2))]
    return {name: _value(random, properties[name], root, depth - 1) for name in wanted}


def _array(random: Random, schema: JsonObject, root: JsonObject, depth: int) -> list[Any]:
    if depth <= 0:
        return []
    items = schema.get("items", {})
    count = random.randrange(min(schema.get("maxItems", 4), 4) + 1)
    return [_value(random, items, root, depth - 1) for _ in range(count)]


def _string(random: Random, schema: JsonObject, root: JsonObject, depth: int) -> str:
    if known := _FORMATS.get(schema.get("format", "")):
        return known
    length = random.randrange(schema.get("minLength", 0), min(schema.get("maxLength", 20), 20) + 1)
    return "".join(random.choices(string.ascii_lowercase, k=length))


def _integer(random: Random, schema: JsonObject, root: JsonObject, depth: int) -> int:
    return random.randint(schema.get("minimum", -1000), schema.get("maximum", 1000))


def _number(random: Random, schema: JsonObject, root: JsonObject, depth: int) -> float:
    return random.uniform(schema.get("minimum", -1000), schema.get("maximum", 1000))


def _boolean(random: Random, schema: JsonObject, root: JsonObject, depth: int) -> bool:
    return random.random() < 0.5


def _null(random: Random, schema: JsonObject, root: JsonObject, depth: int) -> None:
    return None


_BY_TYPE: dict[str, Callable[[Random, JsonObject, JsonObject, int], Any]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "null": _null,
}

_Change = Callable[[Random, JsonObject, str], JsonObject]
_CHANGES: tuple[_Change, ...] = (
    lambda random, made, name: {key: part for key, part in made.items() if key != name},
    lambda random, made, name: {(f"{key}s" if key == name else key): part for key, part in made.items()},
    lambda random, made, name: {(key.upper() if key == name else key): part for key, part in made.items()},
    lambda random, made, name: {**made, name: random_value(random)},
    lambda random, made, name: {**made, name: str(made.get(name))},
    lambda random, made, name: {**made, name: [made.get(name)]},
    lambda random, made, name: {**made, name: random.choice(NUMBERS)},
    lambda random, made, name: {**made, name: None},
    lambda random, made, name: {**made, random.choice(TEXTS): random_value(random)},
    lambda random, made, name: {random.choice(("args", "parameters", "input", "arg")): made},
)
