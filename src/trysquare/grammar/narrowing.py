"""Schema narrowing: parts that no grammar can express are left out, known files and branches become enums.

A tool marks an argument with `x-trysquare-kind`; its schema becomes an enumeration, a pattern or a bound. This is pure:
the caller passes existing files and branches as `Facts`.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeAlias, cast
from urllib.parse import quote

from trysquare.core.json import JsonObject, resolve_pointer
from trysquare.core.result import dump_json
from trysquare.grammar.schema.reader import Unsupported, read_schema
from trysquare.grammar.schema.shapes import ShapeTree

MOST_PARTS = 50
"""Parts of one schema that are left out before all of it is."""
ANY_OBJECT: JsonObject = {"type": "object"}

_log = logging.getLogger(__name__)


def read_loosely(schema: JsonObject, *, label: str, tool: str) -> ShapeTree:
    """The shapes of a tool's arguments, without what cannot be expressed, which is logged."""
    current = copy.deepcopy(schema)
    for _ in range(MOST_PARTS):
        try:
            return read_schema(current, label=label)
        except Unsupported as refusal:
            if not _remove(current, refusal.pointer):
                break
            _log_omission(tool, dump_json(schema), refusal.pointer, refusal.why)
    _log_omission(tool, dump_json(schema), "/", "the rest cannot be expressed either")
    return read_schema(ANY_OBJECT, label=label)


def _remove(schema: JsonObject, pointer: str) -> bool:
    """Remove the part at a JSON pointer from a schema; whether there was one."""
    parent_pointer, _, last = pointer.rpartition("/")
    parent = resolve_pointer(f"#{quote(parent_pointer)}", schema) if pointer else None
    name = last.replace("~1", "/").replace("~0", "~")
    return isinstance(parent, dict) and cast(JsonObject, parent).pop(name, None) is not None


@lru_cache(maxsize=512)
def _log_omission(tool: str, schema: str, pointer: str, why: str) -> None:
    """Logged once for each part of a schema, however often it is read."""
    _log.warning("schema part left out of the grammar: tool=%s pointer=%s %s", tool, pointer, why)


NO_VALUE = "schema"
"""Keyword of the error where no value matches: the schema as a whole."""
KIND = "x-trysquare-kind"
MOST_ALTERNATIVES = 20_000
"""With more files than this, any path in the workspace is allowed."""
_PLAIN = r"[^/\\\x00-\x1f]"
_STEP = rf"(?:[^./\\\x00-\x1f]{_PLAIN}*|\.[^./\\\x00-\x1f]{_PLAIN}*|\.\.{_PLAIN}+)"
WORKSPACE_PATH = rf"^(?:\.|{_STEP}(?:/{_STEP})*/?)$"
"""A relative path without `..`; symlinks are checked by the tool."""
_NESTED = ("items", "additionalProperties", "not", "contains", "propertyNames")
_NESTED_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_NESTED_MAPPINGS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")

Narrowing: TypeAlias = Callable[[JsonObject], "JsonObject | bool"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What exists; None is unknown, and narrows nothing."""

    files: Collection[str] | None = None
    """Paths relative to the workspace."""
    branches: Collection[str] | None = None
    most_lines: int | None = None
    """Lines of the longest file."""


def narrowed(schema: JsonObject, facts: Facts) -> JsonObject:
    """The schema with every marked argument narrowed to what exists; `false` where nothing does."""
    return _narrowed(schema, facts)


def narrowed_tools(
    tools: Mapping[str, JsonObject], facts: Facts, *, denied: Collection[str] = ()
) -> dict[str, JsonObject]:
    """The narrowed tools, without the denied ones and those without any valid arguments."""
    kept = {name: narrowed(schema, facts) for name, schema in tools.items() if name not in denied}
    return {name: schema for name, schema in kept.items() if schema == tools[name] or _can_be_written(schema)}


def _can_be_written(schema: JsonObject) -> bool:
    """Whether any value matches a schema; one that no grammar can express counts as such."""
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
            return partial(_one_of, facts.files)
        case "existing_file" | "workspace_path":
            return _in_workspace
        case "branch" if facts.branches is not None:
            return partial(_one_of, facts.branches)
        case "line" if facts.most_lines is not None:
            return partial(_up_to, facts.most_lines)
        case _:
            return None


def _applied(schema: JsonObject, narrowing: Narrowing) -> JsonObject | bool:
    """The narrowing in the branches of a union, in the items of an array, or here."""
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


def _one_of(alternatives: Collection[str], schema: JsonObject) -> JsonObject | bool:
    known = schema.get("enum")
    kept = [each for each in dict.fromkeys(alternatives) if known is None or each in known]
    return {**schema, "enum": kept} if kept else False


def _in_workspace(schema: JsonObject) -> JsonObject | bool:
    if "pattern" in schema:
        return {**schema, "allOf": [*schema.get("allOf", []), {"pattern": WORKSPACE_PATH}]}
    return {**schema, "pattern": WORKSPACE_PATH}


def _up_to(most: int, schema: JsonObject) -> JsonObject | bool:
    bound = min(most, schema.get("maximum", most))
    return {**schema, "minimum": max(1, schema.get("minimum", 1)), "maximum": bound} if bound >= 1 else False
