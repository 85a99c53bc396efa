"""The gateway's tools as a model sees them: one per server, one per upstream tool, one over all servers.

The dispatcher is imported with the first call: many processes are started for their lists alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from trysquare.core.apps import META_KEY
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.metadata import TaskOptions, ToolMetadata
from trysquare.core.output import Output
from trysquare.core.result import Result
from trysquare.core.signature import Arguments, PassthroughArguments
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool
from trysquare.core.untrusted import cleaned_text, cleaned_value, folded
from trysquare.gateway import arguments as calling
from trysquare.gateway import listing
from trysquare.gateway.apps import served_link
from trysquare.gateway.arguments import CallBuilder, GatewayCall, ListCall, ReadCall, ServerCall, UpstreamCallBuilder
from trysquare.gateway.icons import read_icons
from trysquare.gateway.models import GATEWAY, READ, ServerConfig, ServerEntry, ToolDefinition, upstream_name
from trysquare.gateway.results.store import ReadOn
from trysquare.gateway.service import GatewayService

TOOLSET = "gateway"
LONG_CALL = 10.0
"""Seconds after which a call becomes a task, for clients with tasks."""
_LONG_LIST = 100
_FULL, _LEVELS, _GATEWAY = frozenset({"full"}), frozenset({"levels"}), frozenset({"gateway"})

_MAX_NAMES = 12
"""Servers in an error."""

Run: TypeAlias = Callable[[Any, CallContext], Awaitable[Result[Any]]]


def server_tool(
    servers: GatewayService, finder: listing.ToolFinder, entry: ServerEntry, names: Sequence[str], *, alone: bool
) -> Tool:
    """The tool of one server. `alone` lists it in the full profile too, while the server's tools are unknown."""
    builder = CallBuilder(entry.tool_name)

    def run(call: ServerCall, context: CallContext) -> Awaitable[Result[Any]]:
        # By name: a changed configuration must reach a tool that is listed unchanged.
        return _dispatch(servers, finder, servers.server(entry.name), call, context, builder)

    profiles = _LEVELS | _FULL if alone else _LEVELS
    description = listing.server_description(entry, names)
    return _tool(
        entry.tool_name, description, calling.SERVER_ARGUMENTS, run, profiles, category=entry.name, task=_long(servers)
    )


def gateway_tool(servers: GatewayService, finder: listing.ToolFinder) -> Tool:

    async def run(call: GatewayCall, context: CallContext) -> Result[Any]:
        if call.server is None:
            return await _over_all(servers, finder, call, context)
        server = servers.server(call.server)
        return await _dispatch(servers, finder, server, call, context, CallBuilder(GATEWAY, server=server.name))

    description = listing.gateway_description(servers.entries.values())
    return _tool(GATEWAY, description, calling.GATEWAY_ARGUMENTS, run, _GATEWAY, task=_long(servers))


def read_tool(servers: GatewayService) -> Tool:
    """The tool that reads large results, for profiles without the tools with actions."""

    async def run(call: ReadCall, context: CallContext) -> Result[Any]:
        return await _read(servers, call, context, lambda reading: {"tool": READ, "arguments": reading})

    return _tool(
        READ, "Read part of a large result of an MCP server.", calling.READ_ARGUMENTS, run, _FULL, read_only=True
    )


def upstream_tool(servers: GatewayService, server: ServerConfig, definition: ToolDefinition) -> Tool:
    name = upstream_name(server, definition.name)
    hints = definition.annotations
    return _tool(
        name,
        cleaned_text(definition.description),
        PassthroughArguments(wire=listing.wire_schema(definition.input_schema)),
        _executor(servers, server.name, definition.name, UpstreamCallBuilder(server, name)),
        _FULL,
        category=server.name,
        task=_long(servers),
        title=None if definition.title is None else folded(definition.title),
        read_only=_hint(hints, "readOnlyHint"),
        destructive=_hint(hints, "destructiveHint"),
        idempotent=_hint(hints, "idempotentHint"),
        open_world=_hint(hints, "openWorldHint"),
        icons=read_icons(definition.icons),
        meta={META_KEY: served_link(server.name, definition.page)} if definition.page else {},
        output=None if definition.typed_output is None else Output.listed(cleaned_value(definition.typed_output)),
    )


def unlisted_tool(servers: GatewayService, server: ServerConfig, name: str, tool: str) -> Tool:
    """A tool of a server that was not contacted yet."""
    run = _executor(servers, server.name, tool, UpstreamCallBuilder(server, name))
    return _tool(
        name,
        f"`{tool}` of {server.name}.",
        PassthroughArguments(wire={"type": "object"}),
        run,
        frozenset(),
        task=_long(servers),
    )


def colliding_tool(name: str, owners: Sequence[tuple[ServerConfig, str]]) -> Tool:
    """A name that several upstream tools would share: it runs none of them and returns the calls of each."""
    calls = [CallBuilder(server.tool_name).execute(tool, {}) for server, tool in owners]
    candidates = " and ".join(f"`{tool}` of `{server.name}`" for server, tool in owners)

    async def run(inputs: JsonObject, context: CallContext) -> Result[Any]:
        raise ToolError(
            f"`{name}` is ambiguous: {candidates}.",
            code=ErrorCode.STATE_CONFLICT,
            instruction="Send one of `calls`.",
            fields={"calls": calls},
        )

    arguments = PassthroughArguments(wire={"type": "object", "properties": {}})
    return _tool(name, f"Ambiguous name: {candidates}.", arguments, run, _FULL)


def _executor(servers: GatewayService, server: str, tool: str, builder: CallBuilder) -> Run:
    def run(inputs: JsonObject, context: CallContext) -> Awaitable[Result[Any]]:
        from trysquare.gateway.dispatcher import execute

        return execute(servers, servers.server(server), tool, inputs, context, builder=builder)

    return run


def _dispatch(
    servers: GatewayService,
    finder: listing.ToolFinder,
    server: ServerConfig,
    call: ServerCall,
    context: CallContext,
    builder: CallBuilder,
) -> Awaitable[Result[Any]]:
    if call.action == "read":
        return _read(servers, _read_call(call, builder), context, builder.read)
    if call.action == "list":
        return _list(servers, finder, server, call, builder)
    from trysquare.gateway.dispatcher import execute

    return execute(
        servers, server, call.tool_name, call.tool_inputs, context, builder=builder, request_key=call.request_key
    )


async def _list(
    servers: GatewayService, finder: listing.ToolFinder, server: ServerConfig, call: ServerCall, builder: CallBuilder
) -> Result[Any]:
    if call.tool_name:
        found = await servers.find(server, call.tool_name)
        if found is None:
            from trysquare.gateway.dispatcher import unknown_tool

            raise unknown_tool(servers, server, call.tool_name, call.tool_inputs, builder)
        return listing.tool_listing(server, found, call.detail or "schemas")
    wanted = _list_call(call, builder)
    definitions = await servers.definitions(server)
    if query := call.query or wanted.query:
        return await finder.find(query, server.name, read_only=wanted.read_only)
    shown = partial(
        listing.listing,
        server,
        definitions,
        call.detail or wanted.detail,
        builder=builder,
        instructions=servers.instructions(server),
        offset=wanted.offset,
    )
    return await run_in_thread(shown) if len(definitions) > _LONG_LIST else shown()


def _list_call(call: ServerCall, builder: CallBuilder) -> ListCall:
    return _in_inputs(calling.LIST_ARGUMENTS, call, builder, lambda inputs: builder.list(tool_inputs=inputs))


async def _over_all(
    servers: GatewayService, finder: listing.ToolFinder, call: GatewayCall, context: CallContext
) -> Result[Any]:
    builder = CallBuilder(GATEWAY)
    if call.action == "read":
        return await _read(servers, _read_call(call, builder), context, builder.read)
    if call.action == "execute":
        return await _by_tool_alone(servers, finder, call, context)
    wanted = _list_call(call, builder)
    if query := call.query or wanted.query:
        return await finder.find(query, read_only=wanted.read_only)
    return listing.servers_listing(servers.entries, servers.names)


async def _by_tool_alone(
    servers: GatewayService, finder: listing.ToolFinder, call: GatewayCall, context: CallContext
) -> Result[Any]:
    """Execute without `server`, if exactly one server has the tool and the tools of every other are known."""
    tool = call.tool_name or ""
    owners = [name for name in servers.entries if servers.registry.find(name, tool) is not None]
    unknown = [name for name in servers.entries if servers.registry.definitions(name) is None]
    if len(owners) == 1 and not unknown:
        server = servers.server(owners[0])
        return await _dispatch(servers, finder, server, call, context, CallBuilder(GATEWAY, server=server.name))
    listing_call: JsonObject = {"tool": GATEWAY, "arguments": {"action": "list"}}
    if not owners:
        raise NotFound(
            "`server` is missing, and no contacted server has this tool.",
            instruction="Send `server`; `next` lists the servers.",
            fields={"not_asked": unknown} if unknown else {},
            next=listing_call,
        )
    problem = f"`{tool[:80]}` is a tool of {listing.quoted(owners, _MAX_NAMES)}"
    if unknown:
        problem += f"; {listing.quoted(unknown, _MAX_NAMES)} was not contacted yet and may have it too"
    calls = [CallBuilder(GATEWAY, server=one).execute(tool, call.tool_inputs) for one in owners]
    raise InvalidArguments(
        f"`server` is missing: {problem}. Nothing was sent.",
        code=ErrorCode.VALIDATION_MISSING_PARAM,
        instruction="Send one of `calls`.",
        fields={"outcome": "not_sent", "calls": calls},
        next=calls[0] if len(calls) == 1 else listing_call,
    )


def _read_call(call: ServerCall, builder: CallBuilder) -> ReadCall:
    """The arguments in the `tool_inputs` of `action="read"`."""
    return _in_inputs(calling.READ_ARGUMENTS, call, builder, builder.read)


def _in_inputs(
    arguments: Arguments, call: ServerCall, builder: CallBuilder, corrected: Callable[[JsonObject], JsonObject]
) -> Any:
    """The arguments of `list` or `read`, which are in `tool_inputs`; `corrected` is the call for corrected ones."""
    try:
        return arguments.parse(builder.tool, call.tool_inputs)
    except InvalidArguments as error:
        following = None if error.next is None else corrected(error.next["arguments"])
        raise InvalidArguments(
            f"In `tool_inputs`: {error.message}", code=error.code, instruction=error.instruction, next=following
        ) from None


async def _read(servers: GatewayService, call: ReadCall, context: CallContext, read_call: ReadOn) -> Result[Any]:
    from trysquare.gateway.results.read import read_result

    return await read_result(servers.results, call, context=context, read_call=read_call)


def _long(servers: GatewayService) -> TaskOptions:
    """A call of a server: a task once it takes long, or once the server itself makes one of it."""
    return TaskOptions(after=LONG_CALL, resumes=True, on_cancel=servers.sender.cancel)


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
    output: Output | None = None,
    **more: Any,
) -> Tool:
    def call(given: JsonObject, context: CallContext) -> Awaitable[Result[Any]]:
        return run(arguments.parse(name, given), context)

    metadata = ToolMetadata(toolset=TOOLSET, profiles=profiles, result_limit=None, **more)
    return Tool(
        name=name, title=title, description=description, arguments=arguments, call=call, metadata=metadata,
        output=output,
    )  # fmt: skip
