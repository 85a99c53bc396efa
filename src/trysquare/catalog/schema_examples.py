"""Usage lines and examples that are read off a schema, for tools whose author wrote none."""

from __future__ import annotations

from typing import Any, cast

from trysquare.core.arguments import type_text
from trysquare.core.result import dump_json
from trysquare.core.types import JsonObject


def usage_line(name: str, schema: JsonObject) -> str:
    """How a tool is called: `greet(name: string, tone: "warm" | "formal" = "warm")`."""
    properties = cast(dict[str, JsonObject], schema.get("properties", {}))
    required = set(cast(list[str], schema.get("required", [])))
    parts = [_parameter(key, part, key in required) for key, part in _required_first(properties, required)]
    return f"{name}({', '.join(parts)})"


def _required_first(properties: dict[str, JsonObject], required: set[str]) -> list[tuple[str, JsonObject]]:
    return sorted(properties.items(), key=lambda item: item[0] not in required)


def _parameter(name: str, schema: JsonObject, required: bool) -> str:
    if required:
        return f"{name}: {type_text(schema)}"
    if "default" in schema:
        return f"{name}: {type_text(schema)} = {dump_json(schema['default'])}"
    return f"{name}?: {type_text(schema)}"


def example_arguments(schema: JsonObject) -> JsonObject | None:
    """Arguments made of the values that a schema names: its `examples`, choices and defaults.

    None if a required argument has no such value: an example with a placeholder teaches nothing.
    """
    properties = cast(dict[str, JsonObject], schema.get("properties", {}))
    made: JsonObject = {}
    for name in cast(list[str], schema.get("required", [])):
        known, value = _concrete(properties.get(name, {}))
        if not known:
            return None
        made[name] = value
    return made


def _concrete(schema: JsonObject) -> tuple[bool, Any]:
    """Whether the schema names a value, and the value."""
    if "const" in schema:
        return True, schema["const"]
    for key in ("examples", "enum"):
        if values := cast(list[Any], schema.get(key, [])):
            return True, values[0]
    if "default" in schema:
        return True, schema["default"]
    kind = schema.get("type")
    if kind == "boolean":
        return True, True
    if kind == "array":
        known, value = _concrete(cast(JsonObject, schema.get("items", {})))
        return known, [value]
    if kind == "object" and schema.get("properties"):
        inner = example_arguments(schema)
        return inner is not None, inner
    if options := cast(list[JsonObject], schema.get("anyOf", [])):
        return next((found for found in map(_concrete, options) if found[0]), (False, None))
    return False, None
