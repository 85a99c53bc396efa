"""Usage lines and examples that are read off a schema, for tools whose author wrote none."""

from __future__ import annotations

from typing import Any

from trysquare.catalog.schema_parts import as_list, as_object, one_line_json, properties_of, required_of
from trysquare.core.arguments import type_text
from trysquare.core.types import JsonObject


def usage_line(name: str, schema: JsonObject) -> str:
    """How a tool is called: `greet(name: string, tone: "warm" | "formal" = "warm")`."""
    properties = properties_of(schema)
    required = set(required_of(schema))
    parts = [_parameter(key, part, key in required) for key, part in _required_first(properties, required)]
    return f"{name}({', '.join(parts)})"


def _required_first(properties: dict[str, JsonObject], required: set[str]) -> list[tuple[str, JsonObject]]:
    return sorted(properties.items(), key=lambda item: item[0] not in required)


def _parameter(name: str, schema: JsonObject, required: bool) -> str:
    if required:
        return f"{name}: {type_text(schema)}"
    if "default" in schema:
        return f"{name}: {type_text(schema)} = {one_line_json(schema['default'])}"
    return f"{name}?: {type_text(schema)}"


def example_arguments(schema: JsonObject) -> JsonObject | None:
    """Arguments made of the values that a schema names: its `examples`, choices and defaults.

    None if a required argument has no such value: an example with a placeholder teaches nothing.
    """
    properties = properties_of(schema)
    made: JsonObject = {}
    for name in required_of(schema):
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
        if values := as_list(schema.get(key)):
            return True, values[0]
    if "default" in schema:
        return True, schema["default"]
    kind = schema.get("type")
    if kind == "boolean":
        return True, True
    if kind == "array":
        known, value = _concrete(as_object(schema.get("items")))
        return known, [value]
    if kind == "object" and properties_of(schema):
        inner = example_arguments(schema)
        return inner is not None, inner
    options = (_concrete(as_object(option)) for option in as_list(schema.get("anyOf")))
    return next((found for found in options if found[0]), (False, None))
