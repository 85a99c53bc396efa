"""What a document may hold: JSON Schemas, templates as shapes, and the names that a template may use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast

from trysquare.core.errors import ErrorCode, require_extra
from trysquare.core.json import JsonObject, ref_of, resolve_pointer

Pointer: TypeAlias = tuple[str | int, ...]
MAX_PROBLEMS = 100
_MAX_MESSAGE = 300


def schema_problems(schema: JsonObject, value: Any) -> list[tuple[Pointer, str]]:
    """Every violation of a JSON Schema, in the order of the document."""
    require_extra("bots", "jsonschema", feature="Validating a document", code=ErrorCode.CONFIG_INVALID)
    from jsonschema import Draft202012Validator

    validator: Any = Draft202012Validator(schema)
    found: list[tuple[Pointer, str]] = []
    for error in validator.iter_errors(value):
        found.append((tuple(error.absolute_path), str(error.message)[:_MAX_MESSAGE]))
        if len(found) >= MAX_PROBLEMS:
            break
    return sorted(found, key=lambda each: [str(piece) for piece in each[0]])


_KINDS: tuple[tuple[type[Any] | tuple[type[Any], ...], str], ...] = (
    (bool, "boolean"),
    ((int, float), "number"),
    (str, "string"),
    (list, "list"),
    (dict, "object"),
)


def kind_of(value: Any) -> str:
    """The JSON kind of a value."""
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "null")


def shape_problems(shape: Any, value: Any, form: str) -> list[tuple[Pointer, str]]:
    """Where a document lacks what its template has."""
    if form == "markdown":
        return list(_missing_headings(shape, value))
    return list(_differences(shape, value, ()))[:MAX_PROBLEMS]


def _differences(shape: Any, value: Any, pointer: Pointer) -> Iterator[tuple[Pointer, str]]:
    if shape is None:
        return
    wanted, given = kind_of(shape), kind_of(value)
    if wanted != given:
        yield pointer, f"`{_shown(pointer)}` is a {given}, and in the template a {wanted}."
    elif isinstance(shape, dict):
        for name, inner in cast("Mapping[str, Any]", shape).items():
            if name in value:
                yield from _differences(inner, value[name], (*pointer, name))
            else:
                yield pointer, f"`{_shown((*pointer, name))}` is missing; the template has it."
    elif isinstance(shape, list) and shape:
        items = cast("list[Any]", shape)
        for index, each in enumerate(cast("list[Any]", value)):
            yield from _differences(items[0], each, (*pointer, index))


def _shown(pointer: Pointer) -> str:
    return path_of(pointer).removeprefix("$.") if pointer else "the document"


def path_of(pointer: Pointer) -> str:
    """A pointer as a JSONPath: `$.actions[0].owner`."""
    pieces = (f"[{each}]" if isinstance(each, int) or not _PLAIN.fullmatch(each) else f".{each}" for each in pointer)
    return "$" + "".join(pieces)


_PLAIN = re.compile(r"[A-Za-z_][\w-]*")


def _missing_headings(shape: JsonObject, value: JsonObject) -> Iterator[tuple[Pointer, str]]:
    """Headings of a Markdown template that a document does not have; those with a placeholder are free."""
    present = {(each["level"], each["heading"].casefold()) for each in value["sections"]}
    for section in shape["sections"]:
        heading, level = section["heading"], section["level"]
        if _PLACEHOLDER.search(heading) is None and (level, heading.casefold()) not in present:
            yield (), f"The section `{'#' * level} {heading}` of the template is missing."
    for name in shape["front_matter"]:
        if name not in value["front_matter"]:
            yield ("front_matter",), f"`{name}` of the front matter is missing; the template has it."
    if shape["title"] is not None and value["title"] is None:
        yield (), "The title is missing: a first line such as `# Title`."


_PLACEHOLDER = re.compile(r"[<{\[].*[>}\]]")


def names_of(shape: Any) -> JsonObject | None:
    """The shape of a template as a schema, for its names only."""
    if shape is None:
        return None
    if isinstance(shape, dict):
        inner = {str(name): names_of(each) or {} for name, each in cast("Mapping[Any, Any]", shape).items()}
        return {"type": "object", "properties": inner}
    if isinstance(shape, list):
        made = [names_of(each) or {} for each in cast("list[Any]", shape)]
        return {"type": "array", "items": {"anyOf": made} if made else {}}
    return {"type": kind_of(shape)}


def properties_of(schema: Any, whole: JsonObject) -> dict[str, Any] | None:
    """The properties that a schema names, through references, alternatives and items; None where any name may be."""
    found: dict[str, Any] = {}
    closed = False
    for each in _resolved(schema, whole, 0):
        names = each.get("properties")
        if isinstance(names, Mapping):
            found |= cast("Mapping[str, Any]", names)
            closed = True
        if each.get("type") in ("string", "number", "integer", "boolean", "null"):
            closed = True
        if isinstance(each.get("additionalProperties"), Mapping) or "patternProperties" in each:
            return None
    return found if closed else None


def items_of(schema: Any, whole: JsonObject) -> JsonObject:
    """A schema of the items of a list, or of the value itself where it is no list."""
    inner: list[Any] = []
    for each in _resolved(schema, whole, 0):
        if "items" in each or each.get("type") == "array":
            items = each.get("items", {})
            inner.append(items if isinstance(items, Mapping) else {})
        elif "properties" in each or "type" in each:
            inner.append(each)
    return {"anyOf": inner} if inner else {}


_MOST_DEPTH = 20


def _resolved(schema: Any, whole: JsonObject, depth: int) -> Iterator[Mapping[str, Any]]:
    if not isinstance(schema, Mapping) or depth > _MOST_DEPTH:
        return
    keys = cast("Mapping[str, Any]", schema)
    reference = ref_of(keys)
    if reference is not None:
        yield from _resolved(resolve_pointer(reference, whole), whole, depth + 1)
    yield keys
    for name in ("allOf", "anyOf", "oneOf", "then", "else"):
        given = keys.get(name)
        for each in cast("list[Any]", given) if isinstance(given, list) else [given]:
            yield from _resolved(each, whole, depth + 1)


_TEXT: JsonObject = {"type": "string"}
MARKDOWN_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "front_matter": {},
        "title": _TEXT,
        "text": _TEXT,
        "sections": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "heading": _TEXT,
                    "level": {"type": "number"},
                    "text": _TEXT,
                    "items": {
                        "type": "array",
                        "items": {"type": "object", "properties": {"text": _TEXT, "done": {"type": "boolean"}}},
                    },
                },
            },
        },
    },
}
"""The value of every Markdown document."""


def filled(value: Any, schema: Any, whole: JsonObject) -> Any:
    """A value in which every object has the names that its schema knows."""
    if isinstance(value, list):
        inner = items_of(schema, whole)
        return [filled(each, inner, whole) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    known = properties_of(schema, whole) or {}
    given = cast(JsonObject, value)
    return {
        **{name: filled(each, known.get(name), whole) for name, each in given.items()},
        **{name: None for name in known if name not in given},
    }
