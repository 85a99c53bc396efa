"""The gateway's tools, as a model sees them: one for each server, one for each of their tools, one over all.

What their calls take is imported with the first of them: many servers are started for their lists alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.core.metadata import ToolMetadata
from trysquare.core.result import Result
from trysquare.core.schema import Arguments, GivenArguments
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool
from trysquare.core.types import JsonObject
from trysquare.core.untrusted import cleaned_text, folded
from trysquare.gateway.answers.large import ReadOn
from trysquare.gateway.arguments import (
    GATEWAY_ARGUMENTS,
    READ_ARGUMENTS,
    SERVER_ARGUMENTS,
    GatewayCall,
    ReadCall,
    ServerCall,
)
from trysquare.gateway.checking.wire_schema import wire_schema
from trysquare.gateway.descriptions import gateway_description, server_description
from trysquare.gateway.finding import Finder, servers_listing
from trysquare.gateway.fronts import Front, gateway_front, server_front, upstream_front
from trysquare.gateway.listing import listing, tool_listing
from trysquare.gateway.naming import GATEWAY, READ, space_of, upstream_name
from trysquare.gateway.server import Definition, ServerConfig, ServerEntry
from trysquare.gateway.servers import Servers, usable

ROOM = "gateway"
_MANY = 100
_FULL, _LEVELS, _GATEWAY = frozenset({"full"}), frozenset({"levels"}), frozenset({"gateway"})

_NAMED = 12
"""Servers in an error."""

Run: TypeAlias = Callable[[Any, CallContext], Awaitable[Result[Any]]]


def server_tool(servers: Servers, entry: ServerEntry, names: Sequence[str], *, alone: bool) -> Tool:
    """The tool of one server. `alone` lists it also where each of the server's tools would be, if they were known."""
    front = server_front(entry.tool_name)

    def run(call: ServerCall, context: CallContext) -> Awaitable[Result[Any]]:
        # By its name: a change of the configuration must reach a tool that is shown as it was.
        return _do(servers, usable(servers.entry(entry.name)), call, context, front)

    profiles = _LEVELS | _FULL if alone else _LEVELS
    description = server_description(entry, names)
    return _tool(entry.tool_name, description, SERVER_ARGUMENTS, run, profiles, category=entry.name)


def gateway_tool(servers: Servers, finder: Finder) -> Tool:
    """The one tool over all servers."""

    async def run(call: GatewayCall, context: CallContext) -> Result[Any]:
        if call.server is None:
            return await _over_all(servers, finder, call, context)
        server = usable(servers.entry(call.server))
        return await _do(servers, server, call, context, gateway_front(server))

    return _tool(GATEWAY, gateway_description(servers.entries.values()), GATEWAY_ARGUMENTS, run, _GATEWAY)


def read_tool(servers: Servers) -> Tool:
    """The tool that reads large results, for listings that have no tool with actions."""

    async def run(call: ReadCall, context: CallContext) -> Result[Any]:
        return await _read(servers, call, context, lambda reading: {"tool": READ, "arguments": reading})

    return _tool(READ, "Read a part of a large result of a server.", READ_ARGUMENTS, run, _FULL, read_only=True)


def upstream_tool(servers: Servers, server: ServerConfig, definition: Definition) -> Tool:
    """A tool of a server as a tool of its own."""
    name = upstream_name(space_of(server.tool_name), definition.name)
    hints = definition.annotations
    return _tool(
        name,
        cleaned_text(definition.description),
        GivenArguments(wire=wire_schema(definition.input_schema)),
        _running(servers, server.name, definition.name, upstream_front(server, name)),
        _FULL,
        category=server.name,
        title=None if definition.title is None else folded(definition.title),
        read_only=_hint(hints, "readOnlyHint"),
        destructive=_hint(hints, "destructiveHint"),
        idempotent=_hint(hints, "idempotentHint"),
        open_world=_hint(hints, "openWorldHint"),
    )


def late_tool(servers: Servers, server: ServerConfig, name: str, tool: str) -> Tool:
    """A tool of a server that was not asked yet which tools it has."""
    run = _running(servers, server.name, tool, upstream_front(server, name))
    return _tool(name, f"`{tool}` of {server.name}.", GivenArguments(wire={"type": "object"}), run, frozenset())


def colliding_tool(name: str, owners: Sequence[tuple[ServerConfig, str]]) -> Tool:
    """What several tools of servers would be called: it runs none of them, and tells how to call each."""
    calls = [server_front(server.tool_name).execute(tool, {}) for server, tool in owners]
    told = " and ".join(f"`{tool}` of `{server.name}`" for server, tool in owners)

    async def run(inputs: JsonObject, context: CallContext) -> Result[Any]:
        raise ToolError(
            f"`{name}` could be {told}, so it is none of them.",
            code=ErrorCode.STATE_CONFLICT,
            instruction="Call the one that is meant as one of `calls` does.",
            fields={"calls": calls},
        )

    arguments = GivenArguments(wire={"type": "object", "properties": {}})
    return _tool(name, f"Not usable under this name: it could be {told}.", arguments, run, _FULL)


def _running(servers: Servers, server: str, tool: str, front: Front) -> Run:
    def run(inputs: JsonObject, context: CallContext) -> Awaitable[Result[Any]]:
        from trysquare.gateway.executing import execute

        return execute(servers, usable(servers.entry(server)), tool, inputs, context, front=front)

    return run


def _do(
    servers: Servers, server: ServerConfig, call: ServerCall, context: CallContext, front: Front
) -> Awaitable[Result[Any]]:
    if call.action != "execute":
        return _shown(servers, server, call, context, front)
    from trysquare.gateway.executing import execute

    return execute(
        servers, server, call.tool_name, call.tool_inputs, context, front=front, request_key=call.request_key
    )


async def _shown(
    servers: Servers, server: ServerConfig, call: ServerCall, context: CallContext, front: Front
) -> Result[Any]:
    if call.action == "read":
        return await _read(servers, _reading(call, front), context, front.read)
    if call.tool_name:
        found = await servers.find(server, call.tool_name)
        if found is None:
            from trysquare.gateway.executing import unknown_tool

            raise unknown_tool(servers, server, call.tool_name, call.tool_inputs, front)
        return tool_listing(server, found, call.detail or "schemas")
    definitions, detail = await servers.definitions(server), call.detail or "signatures"
    says = servers.instructions(server)
    if len(definitions) > _MANY:
        # A long list must not keep the calls of others waiting.
        return await run_in_thread(lambda: listing(server, definitions, detail, says=says))
    return listing(server, definitions, detail, says=says)


async def _over_all(servers: Servers, finder: Finder, call: GatewayCall, context: CallContext) -> Result[Any]:
    if call.action == "read":
        front = server_front(GATEWAY)
        return await _read(servers, _reading(call, front), context, front.read)
    if call.action == "execute":
        return await _by_tool_alone(servers, call, context)
    return finder.find(call.query) if call.query else servers_listing(servers.entries, servers.names)


async def _by_tool_alone(servers: Servers, call: GatewayCall, context: CallContext) -> Result[Any]:
    """A tool needs no server named if only one server has it, and if it is known of every other that it has not."""
    named = call.tool_name or ""
    owners = [name for name in servers.entries if servers.catalogue.find(name, named) is not None]
    unknown = [name for name in servers.entries if servers.catalogue.definitions(name) is None]
    if len(owners) == 1 and not unknown:
        server = usable(servers.entry(owners[0]))
        return await _do(servers, server, call, context, gateway_front(server))
    listing_call: JsonObject = {"tool": GATEWAY, "arguments": {"action": "list"}}
    if not owners:
        raise NotFound(
            "`server` is missing, and no known server has such a tool.",
            instruction="Name the server; `next` shows them.",
            fields={"not_asked": unknown} if unknown else {},
            next=listing_call,
        )
    told = f"`{named[:80]}` is a tool of {_quoted(owners)}"
    if unknown:
        told += f", and {_quoted(unknown)} may have one too: it is not known yet what is offered there"
    calls = [server_front(GATEWAY, {"server": one}).execute(named, call.tool_inputs) for one in owners]
    raise InvalidArguments(
        f"{told}. Name the `server`; nothing was sent.",
        code=ErrorCode.VALIDATION_MISSING_PARAM,
        instruction="Send the one of `calls` that is meant.",
        fields={"outcome": "not_sent", "calls": calls},
        next=calls[0] if len(calls) == 1 else listing_call,
    )


def _quoted(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(f"`{name}`" for name in names[:_NAMED]) + more


def _reading(call: ServerCall, front: Front) -> ReadCall:
    """What to read, from the inputs of a call with `action="read"`."""
    try:
        return READ_ARGUMENTS.parse(front.tool, call.tool_inputs)
    except InvalidArguments as error:
        corrected = None if error.next is None else front.read(error.next["arguments"])
        raise InvalidArguments(
            f"In `tool_inputs`: {error.message}", code=error.code, instruction=error.instruction, next=corrected
        ) from None


async def _read(servers: Servers, call: ReadCall, context: CallContext, read_call: ReadOn) -> Result[Any]:
    from trysquare.gateway.answers.reading import read_result

    return await read_result(
        servers.results,
        call.handle,
        path=call.path,
        grep=call.grep,
        offset=call.offset,
        length=call.length,
        unit=call.unit,
        context=context,
        read_call=read_call,
    )


def _hint(annotations: JsonObject, name: str) -> bool | None:
    value = annotations.get(name)
    return value if isinstance(value, bool) else None


def _tool(
    name: str,
    description: str,
    arguments: Arguments,
    run: Run,
    profiles: frozenset[str],
    *,
    title: str | None = None,
    **more: Any,
) -> Tool:
    def call(given: JsonObject, context: CallContext) -> Awaitable[Result[Any]]:
        return run(arguments.parse(name, given), context)

    metadata = ToolMetadata(room=ROOM, profiles=profiles, result_limit=None, **more)
    return Tool(name=name, title=title, description=description, arguments=arguments, call=call, metadata=metadata)
