"""Tools: ours as MCP lists them."""

from __future__ import annotations

from collections.abc import Callable

from trysquare.core.metadata import ToolMetadata
from trysquare.core.tool import Tool
from trysquare.core.types import JsonObject

VERSION_KEY = "trysquare/version"
DEPRECATED_KEY = "trysquare/deprecated"
_OWN = "trysquare/"


def tool_to_wire(tool: Tool, describe: Callable[[Tool], str]) -> JsonObject:
    """One entry of `tools/list`. It tells nothing that differs from one connection to another."""
    wire: JsonObject = {"name": tool.name}
    if tool.title is not None:
        wire["title"] = tool.title
    wire["description"] = describe(tool)
    wire["inputSchema"] = tool.input_schema
    if tool.output_schema is not None:
        wire["outputSchema"] = _envelope_schema(tool.output_schema)
    if annotations := _annotations(tool.metadata):
        wire["annotations"] = annotations
    if meta := _meta(tool.metadata):
        wire["_meta"] = meta
    return wire


def _annotations(metadata: ToolMetadata) -> JsonObject:
    hints = {
        "readOnlyHint": metadata.read_only,
        "destructiveHint": metadata.destructive,
        "idempotentHint": metadata.idempotent,
        "openWorldHint": metadata.open_world,
    }
    return {name: hint for name, hint in hints.items() if hint is not None}


def _meta(metadata: ToolMetadata) -> JsonObject:
    meta = {key: value for key, value in metadata.meta.items() if not key.startswith(_OWN)}
    if metadata.version is not None:
        meta[VERSION_KEY] = metadata.version
    if metadata.deprecated is not None:
        meta[DEPRECATED_KEY] = metadata.deprecated
    return meta


def _envelope_schema(value_schema: JsonObject) -> JsonObject:
    """A tool says what its value is; the client gets the envelope around it."""
    return {
        "type": "object",
        "properties": {"success": {"type": "boolean"}, "value": value_schema},
        "required": ["success"],
    }
