"""Offers: tools as a model sees them in one request, made once for each tool."""

from __future__ import annotations

from typing import Any, cast

from trysquare.catalog.describe import compact_description
from trysquare.core.tool import Tool
from trysquare.core.types import JsonObject
from trysquare.models.model import ToolOffer

REQUEST_KEY = "request_key"
"""The loop fills it in, so that a call that is sent again happens once; a model has no use for it."""


def offer_of(tool: Tool) -> ToolOffer:
    """A tool as an offer: its compact description, the exact union of its actions, and the same flat."""
    return ToolOffer(
        name=tool.name,
        description=compact_description(tool),
        schema=_without_key(tool.arguments.exact),
        flat=_without_key(tool.arguments.wire),
    )


def _without_key(schema: JsonObject) -> JsonObject:
    """The schema without the request key, at its top and in each of its alternatives."""
    if isinstance(options := schema.get("oneOf"), list):
        return {**schema, "oneOf": [_without_key(option) for option in cast(list[JsonObject], options)]}
    properties = cast(JsonObject, schema.get("properties", {}))
    if REQUEST_KEY not in properties:
        return schema
    kept = {name: part for name, part in properties.items() if name != REQUEST_KEY}
    required = [name for name in cast(list[Any], schema.get("required", [])) if name != REQUEST_KEY]
    rest = {key: part for key, part in schema.items() if key not in ("properties", "required")}
    return {**rest, "properties": kept, **({"required": required} if required else {})}
