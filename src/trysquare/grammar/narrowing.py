"""Narrowing: what is known of the world goes into the schemas, so that what does not exist cannot be written.

A tool marks an argument with `x-trysquare-kind`; its schema becomes an enumeration, a pattern or a bound. This is pure:
whoever knows the files and branches hands them over as `Facts`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from trysquare.core.types import JsonObject
from trysquare.grammar.refusals import Unsupported
from trysquare.grammar.schema_reading import read_schema

NO_VALUE = "schema"
"""What is refused where no value fits: not one of its keywords, but the schema as a whole."""
KIND = "x-trysquare-kind"
MOST_ALTERNATIVES = 20_000
"""Of more files than this none are listed; then any path inside the workspace may be written."""
_PLAIN = r"[^/\\\x00-\x1f]"
_STEP = rf"(?:[^./\\\x00-\x1f]{_PLAIN}*|\.[^./\\\x00-\x1f]{_PLAIN}*|\.\.{_PLAIN}+)"
WORKSPACE_PATH = rf"^(?:\.|{_STEP}(?:/{_STEP})*/?)$"
"""A path that starts nowhere else and has no step up. Whether a link leads out is for the tool to see."""
_NESTED = ("items", "additionalProperties", "not", "contains", "propertyNames")
_NESTED_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_NESTED_MAPPINGS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")

Narrowing: TypeAlias = Callable[[JsonObject], "JsonObject | bool"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What exists. None means that it is not known, and then nothing is narrowed."""

    files: Collection[str] | None = None
    """Paths from the workspace's root."""
    branches: Collection[str] | None = None
    most_lines: int | None = None
    """How many lines the longest file has: a line number above it is in no file."""


def narrowed(schema: JsonObject, facts: Facts) -> JsonObject:
    """The schema with every marked argument narrowed to what exists. Where nothing can exist, that part is `false`."""
    return cast(JsonObject, _narrowed(schema, facts))


def narrowed_tools(
    tools: Mapping[str, JsonObject], facts: Facts, *, denied: Collection[str] = ()
) -> dict[str, JsonObject]:
    """The tools that may be called, narrowed: without the denied ones, and those that nothing can be written for."""
    kept = {name: narrowed(schema, facts) for name, schema in tools.items() if name not in denied}
    return {name: schema for name, schema in kept.items() if schema == tools[name] or can_be_written(schema)}


def can_be_written(schema: JsonObject) -> bool:
    """Whether any value fits a schema. One that no grammar can hold is none that nothing fits."""
    try:
        read_schema(schema)
    except Unsupported as refusal:
        return refusal.keyword != NO_VALUE
    return True


def _narrowed(schema: Any, facts: Facts) -> Any:
    if not isinstance(schema, dict):
        return schema
    inner = {key: _narrowed_part(key, value, facts) for key, value in cast(JsonObject, schema).items()}
    narrowing = _narrowing(inner.pop(KIND, None), facts)
    return inner if narrowing is None else _applied(inner, narrowing)


def _narrowed_part(key: str, value: Any, facts: Facts) -> Any:
    if key in _NESTED:
        return _narrowed(value, facts)
    if key in _NESTED_LISTS and isinstance(value, list):
        return [_narrowed(each, facts) for each in cast(list[Any], value)]
    if key in _NESTED_MAPPINGS and isinstance(value, dict):
        return {name: _narrowed(each, facts) for name, each in cast(JsonObject, value).items()}
    return value


def _narrowing(kind: Any, facts: Facts) -> Narrowing | None:
    match kind:
        case "existing_file" if facts.files is not None and len(facts.files) <= MOST_ALTERNATIVES:
            return _one_of(facts.files)
        case "existing_file" | "workspace_path":
            return _in_workspace
        case "branch" if facts.branches is not None:
            return _one_of(facts.branches)
        case "line" if facts.most_lines is not None:
            return _up_to(facts.most_lines)
        case _:
            return None


def _applied(schema: JsonObject, narrowing: Narrowing) -> JsonObject | bool:
    """The narrowing where the values are: in the branches of a union, in the items of an array, or here."""
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return {**schema, union: [_applied(each, narrowing) for each in schema[union]]}
    match schema.get("type"):
        case "array":
            return {**schema, "items": _applied(schema.get("items", {}), narrowing)}
        case "string" | "integer":
            return narrowing(schema)
        case str() | None:
            return schema
        case types:
            return {"anyOf": [_applied({**schema, "type": each}, narrowing) for each in types]}


def _one_of(alternatives: Collection[str]) -> Narrowing:
    def narrow(schema: JsonObject) -> JsonObject | bool:
        known = schema.get("enum")
        kept = [each for each in dict.fromkeys(alternatives) if known is None or each in known]
        return {**schema, "enum": kept} if kept else False

    return narrow


def _in_workspace(schema: JsonObject) -> JsonObject | bool:
    if "pattern" in schema:
        return {**schema, "allOf": [*schema.get("allOf", []), {"pattern": WORKSPACE_PATH}]}
    return {**schema, "pattern": WORKSPACE_PATH}


def _up_to(most: int) -> Narrowing:
    def narrow(schema: JsonObject) -> JsonObject | bool:
        bound = min(most, schema.get("maximum", most))
        return {**schema, "minimum": max(1, schema.get("minimum", 1)), "maximum": bound} if bound >= 1 else False

    return narrow
