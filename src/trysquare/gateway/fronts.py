"""Fronts: how a caller speaks to the gateway, so that every call it is given as an answer is one that it can send."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trysquare.core.types import JsonObject
from trysquare.gateway.naming import GATEWAY, READ, space_of, upstream_name
from trysquare.gateway.server import ServerConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class Front:
    """The calls of one server through one of the gateway's tools."""

    tool: str
    """The tool that was called."""
    execute: Callable[[str, JsonObject], JsonObject]
    """The call of a server's tool with some inputs."""
    list: Callable[[], JsonObject]
    """The call that shows the tools of the server."""
    read: Callable[[JsonObject], JsonObject]
    """The call that reads more of a large result."""


def server_front(tool: str, fixed: JsonObject | None = None) -> Front:
    """Through a tool with actions; `fixed` are arguments that every call repeats."""
    base = fixed or {}

    def call(action: str, **more: object) -> JsonObject:
        return {"tool": tool, "arguments": {**base, "action": action, **more}}

    return Front(
        tool=tool,
        execute=lambda name, inputs: call("execute", tool_name=name, tool_inputs=inputs),
        list=lambda: call("list"),
        read=lambda reading: call("read", tool_inputs=reading),
    )


def gateway_front(server: ServerConfig) -> Front:
    """Through the one tool over all servers."""
    return server_front(GATEWAY, {"server": server.name})


def upstream_front(server: ServerConfig, tool: str) -> Front:
    """Through a tool for each tool of the server."""
    space = space_of(server.tool_name)
    return Front(
        tool=tool,
        execute=lambda name, inputs: {"tool": upstream_name(space, name), "arguments": inputs},
        list=lambda: {"tool": server.tool_name, "arguments": {"action": "list"}},
        read=lambda reading: {"tool": READ, "arguments": reading},
    )
