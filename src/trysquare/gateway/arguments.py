"""Arguments of the gateway's tools, references in them, and the builder of the calls in `next`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, cast

from pydantic import Field, ValidationError

from trysquare.core.arguments import ToolArguments
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.json import JsonObject, as_object
from trysquare.core.schema.errors import unwrap_arguments, validate_arguments
from trysquare.core.signature import ModelArguments
from trysquare.gateway.models import READ, ServerConfig, upstream_name

Detail: TypeAlias = Literal["signatures", "schemas", "names"]


class ServerCall(ToolArguments):
    """A call of one server's tool."""

    action: Literal["list", "execute", "read"] = "list"
    tool_name: str | None = None
    tool_inputs: dict[str, Any] = Field(default_factory=dict[str, Any])
    query: str | None = None
    detail: Detail | None = None
    request_key: str | None = None


class GatewayCall(ServerCall):
    """A call of the one tool over all servers."""

    server: str | None = None


def _text(description: str, **more: object) -> JsonObject:
    return {"type": "string", **more, "description": description}


_ACTIONS = ["list", "execute", "read"]
_ACTION = _text("list tools, execute one, read on", enum=_ACTIONS, default="list")
_TOOL: JsonObject = {
    "tool_name": _text("To execute"),
    "tool_inputs": {"type": "object", "description": "Its inputs", "default": {}},
}


# Every server's tool would pay for them in every list, and those who need them read of them.
_UNLISTED: JsonObject = {
    "query": _text("list: action and object, to find tools by"),
    "detail": _text("list: form", enum=["schemas", "signatures", "names"]),
    "request_key": _text("execute: a repeated key sends nothing twice"),
}


def _closed(properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "additionalProperties": False}


@dataclass(frozen=True, kw_only=True)
class CallArguments:
    """Arguments with a small schema on the wire and a model that validates them."""

    model: type[ServerCall]
    wire: JsonObject

    @property
    def exact(self) -> JsonObject:
        """The schema with the arguments that are accepted and not listed."""
        return {**self.wire, "properties": {**_UNLISTED, **self.wire["properties"]}}

    def parse(self, tool: str, raw: JsonObject) -> Any:
        """The validated call, or an error with the corrected one."""
        properties = self.wire["properties"]
        inner = unwrap_arguments(raw, properties) if len(raw) == 1 else raw
        if None in inner.values():
            # Some clients send every argument, with null for unset ones.
            inner = {name: part for name, part in inner.items() if part is not None}
        read = _parse_inputs(inner)
        known = self.model.model_fields
        if not read.keys() <= known.keys() and read.get("tool_name"):
            raise _misplaced(tool, read, [name for name in read if name not in known])
        try:
            return self.model.model_validate(read, extra="forbid")
        except ValidationError:
            return validate_arguments(self.model.model_validate, tool=tool, raw=read, schema=lambda: self.wire)


SERVER_ARGUMENTS = CallArguments(model=ServerCall, wire=_closed({"action": _ACTION, **_TOOL}))
GATEWAY_ARGUMENTS = CallArguments(
    model=GatewayCall,
    wire=_closed(
        {
            "action": _ACTION,
            "server": _text("Of the tool"),
            **_TOOL,
            "query": _text("Action and object, to find tools by"),
        }
    ),
)


def _parse_inputs(raw: JsonObject) -> JsonObject:
    """Some models send the inputs as a JSON string."""
    inputs = raw.get("tool_inputs")
    if not isinstance(inputs, str):
        return raw
    try:
        parsed = json.loads(inputs or "{}")
    except (ValueError, RecursionError):
        return raw
    return {**raw, "tool_inputs": parsed} if isinstance(parsed, dict) else raw


def _misplaced(tool: str, raw: JsonObject, strays: list[str]) -> InvalidArguments:
    """The error for tool inputs next to `tool_inputs` instead of in it."""
    inputs = {**{name: raw[name] for name in strays}, **as_object(raw.get("tool_inputs"))}
    corrected = {**{name: part for name, part in raw.items() if name not in strays}, "tool_inputs": inputs}
    names = ", ".join(f"`{name[:80]}`" for name in strays[:12])
    return InvalidArguments(
        f"Unknown argument {names}. Put the tool's own arguments into `tool_inputs`.",
        code=ErrorCode.VALIDATION_UNKNOWN_PARAM,
        instruction="Send the corrected call in `next`.",
        next={"tool": tool, "arguments": corrected},
    )


FROM = "$from"
"""Name in an input that refers to a stored result: `{"$from": "HANDLE", "path": "$.rows[*].id"}`."""
MAX_DEPTH = 64
"""Levels of the inputs in which references are looked for."""
_REFERENCE = frozenset({FROM, "path"})


def is_reference(value: JsonObject) -> bool:
    """Whether an object has `$from`, optionally `path`, and nothing else."""
    return FROM in value and _REFERENCE.issuperset(value)


def holds_reference(value: Any, depth: int = 0) -> bool:
    """Whether there is a reference anywhere in a value."""
    if isinstance(value, dict):
        if is_reference(cast(JsonObject, value)):
            return True
        parts = cast(JsonObject, value).values()
    elif isinstance(value, list):
        parts = cast(list[Any], value)
    else:
        return False
    for part in parts:
        if isinstance(part, (dict, list)) and depth < MAX_DEPTH and holds_reference(part, depth + 1):
            return True
    return False


class ReadCall(ToolArguments):
    """Which part of a large result to read."""

    handle: str = Field(description="Handle of a large result")
    path: str | None = Field(None, description="JSONPath, such as $.rows[*].id")
    grep: str | None = Field(None, description="Regular expression; only matching lines")
    offset: int = Field(0, description="First position to read", ge=0)
    length: int | None = Field(None, description="Number of units to read", ge=1)
    unit: Literal["characters", "lines"] = Field("characters", description="Unit of offset and length")


class ListCall(ToolArguments):
    """Which of a server's tools to list, and in which form."""

    query: str | None = Field(None, description="Action and object in a few words, to find tools by")
    read_only: bool = Field(False, description="Find only tools that change nothing")
    detail: Detail | None = Field(None, description="Form of the list")
    offset: int = Field(0, description="First tool of a long list", ge=0)


READ_ARGUMENTS = ModelArguments(ReadCall)
LIST_ARGUMENTS = ModelArguments(ListCall)


class CallBuilder:
    """Builds calls of one server through a tool with actions; `fixed` are arguments of every call."""

    is_typed: ClassVar[bool] = False
    """Whether the tool lists the output schema of what it executes."""

    def __init__(self, tool: str, **fixed: object) -> None:
        self.tool, self._fixed = tool, fixed

    def execute(self, name: str, inputs: JsonObject) -> JsonObject:
        return self._call("execute", tool_name=name, tool_inputs=inputs)

    def list(self, **more: object) -> JsonObject:
        return self._call("list", **more)

    def read(self, reading: JsonObject) -> JsonObject:
        return self._call("read", tool_inputs=reading)

    def _call(self, action: str, **more: object) -> JsonObject:
        return {"tool": self.tool, "arguments": {**self._fixed, "action": action, **more}}


class UpstreamCallBuilder(CallBuilder):
    """Builds calls of a server's tools by their own names."""

    is_typed = True

    def __init__(self, server: ServerConfig, tool: str) -> None:
        super().__init__(tool)
        self._server = server

    def execute(self, name: str, inputs: JsonObject) -> JsonObject:
        return {"tool": upstream_name(self._server, name), "arguments": inputs}

    def list(self, **more: object) -> JsonObject:
        return {"tool": self._server.tool_name, "arguments": {"action": "list", **more}}

    def read(self, reading: JsonObject) -> JsonObject:
        return {"tool": READ, "arguments": reading}
