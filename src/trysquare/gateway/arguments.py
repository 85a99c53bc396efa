"""What the gateway's tools take. Their schemas are written by hand: a model pays for them once for every server."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from pydantic import Field

from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.healing import checked, unwrapped
from trysquare.core.schema import Extra, ModelArguments
from trysquare.core.types import JsonObject

Detail: TypeAlias = Literal["signatures", "schemas", "names"]


class ServerCall(ToolArguments):
    """A call of one server's tool."""

    action: Literal["list", "execute", "read"] = "list"
    tool_name: str | None = None
    tool_inputs: dict[str, Any] = Field(default_factory=dict[str, Any])
    detail: Detail | None = None
    request_key: str | None = None


class GatewayCall(ServerCall):
    """A call of the one tool over all servers."""

    server: str | None = None
    query: str | None = None


_ACTION: JsonObject = {"type": "string", "enum": ["list", "execute", "read"], "default": "list"}
_TEXT: JsonObject = {"type": "string"}
_SHARED: JsonObject = {"tool_name": _TEXT, "tool_inputs": {"type": "object"}, "detail": _TEXT, "request_key": _TEXT}


def _closed(properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "additionalProperties": False}


@dataclass(frozen=True, kw_only=True)
class CallArguments:
    """Arguments of a tool of the gateway: a small schema on the wire, and a model that checks them."""

    model: type[ServerCall]
    wire: JsonObject

    @property
    def exact(self) -> JsonObject:
        return self.wire

    def parse(self, tool: str, raw: JsonObject) -> Any:
        """The checked call, or an error with the corrected one."""
        properties = self.wire["properties"]
        inner = unwrapped(raw, properties) if len(raw) == 1 else raw
        read = _with_object(_without_nulls(inner))
        if not read.keys() <= properties.keys() and read.get("tool_name"):
            raise _astray(tool, read, [name for name in read if name not in properties])
        return checked(self._check, tool=tool, raw=read, schema=lambda: self.wire)

    def _check(self, arguments: JsonObject, extra: Extra) -> Any:
        return self.model.model_validate(arguments, extra=extra)


SERVER_ARGUMENTS = CallArguments(model=ServerCall, wire=_closed({"action": _ACTION, **_SHARED}))
GATEWAY_ARGUMENTS = CallArguments(
    model=GatewayCall,
    wire=_closed({"action": _ACTION, "server": _TEXT, **_SHARED, "query": _TEXT}),
)


def _without_nulls(raw: JsonObject) -> JsonObject:
    """Some clients send every argument, and null for those that are not meant."""
    return {name: part for name, part in raw.items() if part is not None} if None in raw.values() else raw


def _with_object(raw: JsonObject) -> JsonObject:
    """Some models send the inputs as a text that holds the object."""
    inputs = raw.get("tool_inputs")
    if not isinstance(inputs, str):
        return raw
    try:
        parsed = json.loads(inputs or "{}")
    except (ValueError, RecursionError):
        return raw
    return {**raw, "tool_inputs": parsed} if isinstance(parsed, dict) else raw


def _astray(tool: str, raw: JsonObject, strays: list[str]) -> InvalidArguments:
    """What to say where a tool's inputs stand beside `tool_inputs` instead of in it."""
    given = raw.get("tool_inputs")
    inside = cast(JsonObject, given) if isinstance(given, dict) else {}
    kept = {name: part for name, part in raw.items() if name not in strays}
    corrected = {**kept, "tool_inputs": {**{name: raw[name] for name in strays}, **inside}}
    named = ", ".join(f"`{name[:80]}`" for name in strays[:12])
    return InvalidArguments(
        f"There is no argument {named}; what the tool itself takes belongs into `tool_inputs`.",
        code=ErrorCode.VALIDATION_UNKNOWN_PARAM,
        instruction="Send the corrected call in `next`.",
        next={"tool": tool, "arguments": corrected},
    )


class ReadCall(ToolArguments):
    """Which part of a large result to read."""

    handle: str = Field(description="As a large result gave it")
    path: str | None = Field(None, description="JSONPath into it, such as $.rows[*].id")
    grep: str | None = Field(None, description="Only lines that match this pattern")
    offset: int = Field(0, description="Where to begin", ge=0)
    length: int | None = Field(None, description="How much to read", ge=1)
    unit: Literal["characters", "lines"] = Field("characters", description="What offset and length count")


READ_ARGUMENTS = ModelArguments(ReadCall)
