"""Parts of a schema, read without trust: a schema from another server can hold anything."""

from __future__ import annotations

import json
from typing import Any, cast

from trysquare.core.types import JsonObject


def as_object(value: Any) -> JsonObject:
    """The value, where it is an object, or an empty one."""
    return cast(JsonObject, value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value, where it is a list, or an empty one."""
    return cast(list[Any], value) if isinstance(value, list) else []


def properties_of(schema: Any) -> dict[str, JsonObject]:
    """The named fields of an object schema; a field that is no schema object says nothing."""
    return {name: as_object(part) for name, part in as_object(as_object(schema).get("properties")).items()}


def required_of(schema: Any) -> list[str]:
    """The names of the required fields."""
    return [name for name in as_list(as_object(schema).get("required")) if isinstance(name, str)]


def one_line_json(value: Any) -> str:
    """Compact JSON text that holds whatever the value holds, broken characters too."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
