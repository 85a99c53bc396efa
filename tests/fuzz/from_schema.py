"""Arguments made from a tool's own schema: valid ones, and ones that are wrong in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from hypothesis import strategies as st
from tests.fuzz.values import any_text, any_value

from trysquare.core.types import JsonObject

_DEPTH = 3


def fitting(schema: JsonObject) -> st.SearchStrategy[JsonObject]:
    """Arguments as the schema wants them, as far as its common keywords say."""
    return cast("st.SearchStrategy[JsonObject]", _object(schema, schema, _DEPTH))


def nearly_fitting(schema: JsonObject) -> st.SearchStrategy[JsonObject]:
    """Arguments that fit but for one change: a part dropped, renamed, replaced, added or wrapped."""
    return st.tuples(fitting(schema), st.sampled_from(_CHANGES), any_text, any_value).map(_changed)


def _value(schema: JsonObject, root: JsonObject, depth: int) -> st.SearchStrategy[Any]:
    if "$ref" in schema:
        return _value(_resolved(schema["$ref"], root), root, depth)
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return st.one_of([_value(member, root, depth) for member in schema[union]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema.get("type")
    make = _BY_TYPE.get(kind if isinstance(kind, str) else "", lambda *_: any_value)
    return make(schema, root, depth)


def _resolved(reference: str, root: JsonObject) -> JsonObject:
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found


def _object(schema: JsonObject, root: JsonObject, depth: int) -> st.SearchStrategy[Any]:
    properties = cast("dict[str, JsonObject]", schema.get("properties", {}))
    if not properties or depth <= 0:
        return st.dictionaries(any_text, any_value, max_size=2) if not properties else st.just({})
    required = set(schema.get("required", ()))
    made = {name: _value(part, root, depth - 1) for name, part in properties.items()}
    return st.fixed_dictionaries(
        {name: value for name, value in made.items() if name in required},
        optional={name: value for name, value in made.items() if name not in required},
    )


def _array(schema: JsonObject, root: JsonObject, depth: int) -> st.SearchStrategy[Any]:
    if depth <= 0:
        return st.just([])
    most = min(schema.get("maxItems", 3), 3)
    return st.lists(_value(schema.get("items", {}), root, depth - 1), max_size=most)


def _string(schema: JsonObject, root: JsonObject, depth: int) -> st.SearchStrategy[Any]:
    if "pattern" in schema:
        return st.from_regex(schema["pattern"], fullmatch=True).map(lambda text: text[: schema.get("maxLength", 30)])
    formats = {
        "date": "2026-07-28",
        "date-time": "2026-07-28T12:00:00Z",
        "uuid": "0b8a1c36-8a4c-4a7e-9a55-0b8a1c368a4c",
        "path": "some/where",
    }
    known = formats.get(schema.get("format", ""))
    return st.just(known) if known else st.text(max_size=min(schema.get("maxLength", 20), 20))


def _number(schema: JsonObject, root: JsonObject, depth: int) -> st.SearchStrategy[Any]:
    return st.integers(schema.get("minimum", -1000), schema.get("maximum", 1000))


_BY_TYPE: dict[str, Callable[[JsonObject, JsonObject, int], st.SearchStrategy[Any]]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": _number,
    "number": _number,
    "boolean": lambda *_: st.booleans(),
    "null": lambda *_: st.none(),
}

_CHANGES = ("drop", "rename", "replace", "add", "wrap", "stringify", "nullify")


def _changed(parts: tuple[JsonObject, str, str, Any]) -> JsonObject:
    given, change, text, value = parts
    name = next(iter(given), None)
    match change:
        case "drop" if name is not None:
            return {key: part for key, part in given.items() if key != name}
        case "rename" if name is not None:
            return {(key + "s" if key == name else key): part for key, part in given.items()}
        case "replace" if name is not None:
            return {**given, name: value}
        case "stringify" if name is not None:
            return {**given, name: str(given[name])}
        case "nullify" if name is not None:
            return {**given, name: None}
        case "wrap":
            return {"args": given}
        case _:
            return {**given, text: value}
