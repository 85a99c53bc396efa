"""Dispatcher: one call of a server's tool, from the model's inputs to the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound
from trysquare.core.json import JsonObject
from trysquare.core.result import Result, dump_json
from trysquare.core.text import closest_names
from trysquare.gateway.arguments import FROM, CallBuilder, holds_reference
from trysquare.gateway.listing import quoted, signature
from trysquare.gateway.models import SEPARATOR, ResultOrigin, ServerConfig, ToolDefinition
from trysquare.gateway.results.present import present_result
from trysquare.gateway.service import GatewayService
from trysquare.gateway.upstream import errors as failures
from trysquare.gateway.upstream.codec import MalformedResult

if TYPE_CHECKING:
    from trysquare.core.schema.repair import Repaired
    from trysquare.core.schema.validator import Call

WHOLE = "trysquare/whole"
"""Set in the `_meta` of a call whose caller takes results of any size."""
RESULT_BYTES = "trysquare/result_bytes"
"""Set in the `_meta` of a call whose caller wants larger results spilled to a handle."""
_MAX_NAMES = 40
"""Names in an error; `list` gives a longer list."""


async def execute(
    servers: GatewayService,
    server: ServerConfig,
    tool: str | None,
    inputs: JsonObject,
    context: CallContext,
    *,
    builder: CallBuilder,
    request_key: str | None = None,
) -> Result[Any]:
    """Run a tool of a server: find it, validate and repair the inputs, send them once, present the result."""
    if not tool:
        names = [one.name for one in await servers.definitions(server)]
        raise InvalidArguments(
            f"`tool_name` is missing. {_tools(server, names)}",
            code=ErrorCode.VALIDATION_MISSING_PARAM,
            instruction="Send `tool_name`. The call in `next` lists the tools with their inputs.",
            next=builder.list(),
        )

    # The definition in use is the approved one; a pending change may refuse the call.
    definition = servers.find_known(server, tool) or await servers.find(server, tool)
    if (change := servers.registry.pending_change(server.name, tool)) is not None and change.refuses:
        raise change.refusal()
    if definition is None or (definition.is_for_pages and not builder.is_typed):
        raise unknown_tool(servers, server, tool, inputs, builder)

    resolved, notes = inputs, ()
    # A tool with an input of that name means the input: nothing of it is a reference.
    if holds_reference(inputs) and f'"{FROM}"' not in dump_json(definition.input_schema):
        from trysquare.gateway.results.read import resolve_references

        resolved = await resolve_references(inputs, servers.results, context)
    if not definition.validator.accepts(resolved):
        resolved, notes = repaired_inputs(definition, resolved, partial(builder.execute, tool))

    # Ledger, connection, timeout and retries.
    sent = await servers.sender.send(
        server, definition, resolved, request_key=request_key, context=context, arguments=inputs
    )

    origin = ResultOrigin(server.name, tool, notes=(*notes, *sent.answer.notes), replayed=sent.replayed)
    limit = _result_limit(server, context.meta) if context.meta else server.result_bytes
    try:
        return await present_result(
            sent.answer, origin, limit=limit, context=context, results=servers.results, read_call=builder.read,
            is_typed=builder.is_typed and definition.typed_output is not None,
        )  # fmt: skip
    except MalformedResult as error:
        raise failures.malformed(server.name, tool, str(error)) from None


def repaired_inputs(definition: ToolDefinition, inputs: Any, call: Call) -> Repaired:
    """The inputs as the tool's schema asks for them, with notes on what was changed. Raises `InvalidArguments`."""
    from trysquare.core.schema.repair import repair_arguments

    try:
        return repair_arguments(definition.validator, inputs, call)
    except InvalidArguments as error:
        error.instruction = f"{error.instruction} Nothing was sent yet."
        error.fields = {"signature": signature(definition)}
        raise


def _result_limit(server: ServerConfig, meta: Mapping[str, Any]) -> int:
    """The size of results that the caller asks for, at most the server's; 0 for no limit."""
    if meta.get(WHOLE) is True:
        return 0
    limit = meta.get(RESULT_BYTES)
    if type(limit) is not int or limit <= 0:
        return server.result_bytes
    return min(limit, server.result_bytes or limit)


def unknown_tool(
    servers: GatewayService, server: ServerConfig, tool: str, inputs: JsonObject, builder: CallBuilder
) -> NotFound:
    """The error for a tool that the server does not have, with the closest names."""
    names = servers.names(server) or []
    close = closest_names(tool.rpartition(SEPARATOR)[2] or tool, names, count=3)
    elsewhere = [name for name in servers.entries if servers.registry.find(name, tool) is not None]
    if close:
        hint = f"Did you mean {' or '.join(f'`{one}`' for one in close)}?"
    elif elsewhere:
        hint = f"Servers with this tool: {', '.join(f'`{one}`' for one in elsewhere[:3])}."
    else:
        hint = _tools(server, names)
    return NotFound(
        f"Unknown tool `{tool[:80]}` of server `{server.name}`. {hint}",
        instruction="Send the call in `next` if you meant that tool." if close else "List the tools with `next`.",
        next=builder.execute(close[0], inputs) if close else builder.list(),
    )


def _tools(server: ServerConfig, names: Sequence[str]) -> str:
    if not names:
        return f"Server `{server.name}` has no tools."
    return f"Tools of `{server.name}`: {quoted([name[:80] for name in names], _MAX_NAMES)}."
