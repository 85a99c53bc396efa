"""JSON Schema from annotations, without building a validator, and its normal form on the wire.

Pydantic's own generator first compiles a validator; with a thousand tools that is most of a cold start. Nearly all
arguments are plain (text, numbers, choices, lists of those), and their schema is read off the annotation. Anything else
returns None here and is left to pydantic; the tests hold both ways to the same result. `normalize_schema` removes
generated titles, inlines references and fixes the order of keys.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

import annotated_types
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, to_jsonable_python

from trysquare.core.json import JsonObject, objects_in

P = TypeVar("P")

_SCALARS: dict[Any, JsonObject] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
}
_NUMBERS, _TEXT, _LIST = frozenset({"integer", "number"}), frozenset({"string"}), frozenset({"array"})
_BOUNDS: dict[type, tuple[str, dict[str, frozenset[str]]]] = {
    annotated_types.Ge: ("ge", {"minimum": _NUMBERS}),
    annotated_types.Gt: ("gt", {"exclusiveMinimum": _NUMBERS}),
    annotated_types.Le: ("le", {"maximum": _NUMBERS}),
    annotated_types.Lt: ("lt", {"exclusiveMaximum": _NUMBERS}),
    annotated_types.MultipleOf: ("multiple_of", {"multipleOf": _NUMBERS}),
    annotated_types.MinLen: ("min_length", {"minLength": _TEXT, "minItems": _LIST}),
    annotated_types.MaxLen: ("max_length", {"maxLength": _TEXT, "maxItems": _LIST}),
}
"""Bounds of an annotation: the attribute with the limit, and its keyword for each type."""
_LITERAL_TYPES: dict[Any, str] = {str: "string", int: "integer", bool: "boolean", type(None): "null"}


def annotation_schema(annotation: Any) -> JsonObject | None:
    """The schema of a plain annotation, or None if it is not plain."""
    try:
        if (scalar := _SCALARS.get(annotation)) is not None:
            return dict(scalar)
    except TypeError:
        return None
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return _literal_schema(arguments)
    if origin is Union or origin is types.UnionType:
        return _union_schema(arguments)
    if origin is list and len(arguments) == 1:
        items = annotation_schema(arguments[0])
        return None if items is None else {"type": "array", "items": items}
    if origin is dict and len(arguments) == 2 and arguments[0] is str:
        values = annotation_schema(arguments[1])
        return None if values is None else {"type": "object", "additionalProperties": values or True}
    return None


def _literal_schema(choices: tuple[Any, ...]) -> JsonObject | None:
    kinds = {_LITERAL_TYPES.get(cast(Any, type(choice))) for choice in choices}
    if len(kinds) != 1 or None in kinds:
        return None
    if len(choices) == 1:
        return {"const": choices[0], "type": kinds.pop()}
    return {"enum": list(choices), "type": kinds.pop()}


def _union_schema(members: tuple[Any, ...]) -> JsonObject | None:
    schemas: list[JsonObject] = []
    # Pydantic puts null last, wherever it was written.
    for member in sorted(members, key=lambda member: member is type(None)):
        schema = annotation_schema(member)
        if schema is None:
            return None
        if schema not in schemas:
            schemas.append(schema)
    return {"anyOf": schemas} if len(schemas) > 1 else schemas[0]


def plain_field_schema(info: FieldInfo) -> JsonObject | None:
    """The schema of a plain field: its annotation, bounds, description and default. None if anything else is set."""
    schema = None if _is_special(info) else annotation_schema(info.annotation)
    schema = None if schema is None else _bounded(schema, info.metadata)
    if schema is None:
        return None
    if info.description is not None:
        schema["description"] = info.description
    extra: Any = info.json_schema_extra
    if isinstance(extra, dict):
        schema.update(cast(JsonObject, extra))
    has_default = not info.is_required() and info.default_factory is None
    return with_default(schema, info.default) if has_default else schema


def _bounded(schema: JsonObject, bounds: list[Any]) -> JsonObject | None:
    """The schema with bounds added, or None if one of them is not plain, or bounds what is not."""
    for bound in bounds:
        attribute, words = _BOUNDS.get(cast(Any, type(bound)), ("", {}))
        word = next((word for word, types in words.items() if schema.get("type") in types), None)
        limit = getattr(bound, attribute, None)
        if word is None or type(limit) is not int or word in schema or "enum" in schema or "const" in schema:
            return None
        schema = {**schema, word: limit}
    return schema


def with_default(schema: JsonObject, default: Any) -> JsonObject | None:
    """The schema with a default added, or None if the default has no JSON form."""
    try:
        return {**schema, "default": to_jsonable_python(default)}
    except (PydanticSerializationError, ValueError):
        return None


def _is_special(info: FieldInfo) -> bool:
    if info.alias or info.validation_alias or callable(info.json_schema_extra) or info.discriminator:
        return True
    return any(part is not None for part in (info.title, info.examples, info.deprecated, info.field_title_generator))


def plain_object_schema(fields: dict[str, FieldInfo]) -> JsonObject | None:
    """The closed object schema of plain fields, or None if one of them is not plain."""
    return closed_object_schema(fields, plain_field_schema, FieldInfo.is_required)


def closed_object_schema(
    parts: dict[str, P], schema_of: Callable[[P], JsonObject | None], is_required: Callable[[P], bool]
) -> JsonObject | None:
    """The closed object schema of some named parts, or None if one of them has no plain schema."""
    schemas = {name: schema_of(part) for name, part in parts.items()}
    if None in schemas.values():
        return None
    closed: JsonObject = {"type": "object", "properties": schemas, "additionalProperties": False}
    required = [name for name, part in parts.items() if is_required(part)]
    return {**closed, "required": required} if required else closed


_ORDER = ("type", "const", "enum", "description", "properties", "required", "additionalProperties", "items", "anyOf")
_RANK = {key: rank for rank, key in enumerate(_ORDER)}
_SCHEMA = frozenset({"items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else"})
_LIST_OF_SCHEMAS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_MAP_OF_SCHEMAS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_MAX_INLINED = 2_000
OWN_WORDS = "x-trysquare-"
"""Prefix of the keywords that Trysquare's own packages put into a schema for one another."""


def normalize_schema(schema: JsonObject) -> JsonObject:
    """A copy without noise: titles of pydantic's making go, definitions are written where they are used."""
    definitions = cast(JsonObject, schema.get("$defs", {}))
    inlined = _Inliner(definitions)
    body = inlined.tidy({key: value for key, value in schema.items() if key != "$defs"})
    references = inlined.tidy_references()
    return {**body, "$defs": references} if references else body


class _Inliner:
    """Writes definitions out, up to a number of them: a schema that explodes keeps its references."""

    def __init__(self, definitions: JsonObject) -> None:
        self._definitions = definitions
        uses = {name: _references(definition) for name, definition in definitions.items()}
        self._recursive = {name for name in definitions if name in _reachable(name, uses)}
        self._referenced: set[str] = set()
        self._budget = _MAX_INLINED

    def tidy(self, schema: Any) -> Any:
        if not isinstance(schema, dict):
            return schema
        node = self._resolve(cast(JsonObject, schema))
        cleaned = {key: self._tidy_part(key, value) for key, value in node.items() if not _is_noise(key, value)}
        return dict(sorted(_without_null_default(cleaned).items(), key=lambda item: _RANK.get(item[0], len(_ORDER))))

    def tidy_references(self) -> JsonObject:
        """The definitions that are still referred to. Writing one out may show that it refers to more."""
        written: JsonObject = {}
        while waiting := sorted(self._referenced - written.keys()):
            for name in waiting:
                written[name] = self.tidy(self._definitions[name])
        return dict(sorted(written.items()))

    def _resolve(self, node: JsonObject) -> JsonObject:
        reference = node.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
            return node
        name = reference.removeprefix("#/$defs/")
        if name not in self._definitions:
            return node
        if name in self._recursive or self._budget <= 0:
            self._referenced.add(name)
            return node
        self._budget -= 1
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return {**self._resolve(self._definitions[name]), **rest}

    def _tidy_part(self, key: str, value: Any) -> Any:
        if key in _MAP_OF_SCHEMAS and isinstance(value, dict):
            return {name: self.tidy(part) for name, part in cast(JsonObject, value).items()}
        if key in _LIST_OF_SCHEMAS and isinstance(value, list):
            return [self.tidy(part) for part in cast(list[Any], value)]
        return self.tidy(value) if key in _SCHEMA else value


def without_own_words(schema: Any) -> Any:
    """The schema without the keywords that only Trysquare reads: clients would pay for them without using them."""
    if isinstance(schema, dict):
        parts = cast(JsonObject, schema).items()
        return {key: without_own_words(part) for key, part in parts if not key.startswith(OWN_WORDS)}
    return [without_own_words(part) for part in cast(list[Any], schema)] if isinstance(schema, list) else schema


def _is_noise(key: str, value: Any) -> bool:
    if key == "default" and isinstance(value, float):
        # JSON has no word for NaN and the infinities.
        return not math.isfinite(value)
    return (key == "title" and isinstance(value, str)) or key == "discriminator"


def _without_null_default(node: JsonObject) -> JsonObject:
    """`X or null, by default null` becomes an optional X: shorter, and accepted by every model API."""
    options = node.get("anyOf")
    if not isinstance(options, list) or "default" not in node or node["default"] is not None:
        return node
    options_left = [option for option in cast(list[Any], options) if option != {"type": "null"}]
    if not options_left:
        return node
    rest = {key: value for key, value in node.items() if key not in ("anyOf", "default")}
    if len(options_left) == 1 and isinstance(options_left[0], dict):
        return {**cast(JsonObject, options_left[0]), **rest}
    return {**rest, "anyOf": options_left}


def _reachable(start: str, uses: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = list(uses[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(uses.get(name, ()))
    return seen


def _references(node: Any) -> set[str]:
    return {str(each["$ref"]).removeprefix("#/$defs/") for each in objects_in([node]) if "$ref" in each}
