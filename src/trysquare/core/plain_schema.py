"""JSON Schema of plain annotations, without building a validator.

Pydantic's own generator first compiles a validator; with a thousand tools that is most of a cold start. Nearly all
arguments are plain (text, numbers, choices, lists of those), and for them the schema can be read off the annotation.
Whatever is not plain answers None here, and pydantic decides. The tests hold both ways to the same answer.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

import annotated_types
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, to_jsonable_python

from trysquare.core.types import JsonObject

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
"""What may stand beside an annotation: the attribute that holds the bound, and its word for each type."""
_LITERAL_TYPES: dict[Any, str] = {str: "string", int: "integer", bool: "boolean", type(None): "null"}


def plain_annotation_schema(annotation: Any) -> JsonObject | None:
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
        items = plain_annotation_schema(arguments[0])
        return None if items is None else {"type": "array", "items": items}
    if origin is dict and len(arguments) == 2 and arguments[0] is str:
        values = plain_annotation_schema(arguments[1])
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
    # Pydantic tells null last, wherever it was written.
    for member in sorted(members, key=lambda member: member is type(None)):
        schema = plain_annotation_schema(member)
        if schema is None:
            return None
        if schema not in schemas:
            schemas.append(schema)
    return {"anyOf": schemas} if len(schemas) > 1 else schemas[0]


def plain_field_schema(info: FieldInfo) -> JsonObject | None:
    """The schema of a plain field: its annotation, bounds, description and default. None if anything else is set."""
    schema = None if _is_special(info) else plain_annotation_schema(info.annotation)
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
    properties: JsonObject = {}
    for name, part in parts.items():
        schema = schema_of(part)
        if schema is None:
            return None
        properties[name] = schema
    closed: JsonObject = {"type": "object", "properties": properties, "additionalProperties": False}
    required = [name for name, part in parts.items() if is_required(part)]
    if required:
        closed["required"] = required
    return closed
