"""Executing: one call of a server's tool, checked and mended before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound
from trysquare.core.nearest import nearest
from trysquare.core.result import Result
from trysquare.core.types import JsonObject
from trysquare.gateway.answers.origin import Origin
from trysquare.gateway.answers.passing_on import passed_on
from trysquare.gateway.answers.references import holds_reference, resolve
from trysquare.gateway.answers.result_shape import MalformedResult
from trysquare.gateway.answers.results import is_short, present
from trysquare.gateway.checking.repair import checked, refusal
from trysquare.gateway.fronts import Front
from trysquare.gateway.server import ServerConfig
from trysquare.gateway.servers import Servers
from trysquare.gateway.upstream import failures

WHOLE = "trysquare/whole"
"""What a caller sets in its `_meta` who takes results of any size as they are."""
RESULT_BYTES = "trysquare/result_bytes"
"""What a caller sets in its `_meta` who wants a handle already for results that are larger than this."""
_NAMES = 40
"""Names in an error; a longer list is asked for with `list`."""


async def execute(
    servers: Servers,
    server: ServerConfig,
    tool: str | None,
    inputs: JsonObject,
    context: CallContext,
    *,
    front: Front,
    request_key: str | None = None,
) -> Result[Any]:
    """Run a tool of a server: find it, mend and check the inputs, send them once, and pass the answer on."""
    if not tool:
        raise _unnamed(server, [one.name for one in await servers.definitions(server)], front)
    definition = servers.find_known(server, tool) or await servers.find(server, tool)
    if (held := servers.catalogue.held_tool(server.name, tool)) is not None and held.refuses:
        raise held.refusal()
    if definition is None:
        raise unknown_tool(servers, server, tool, inputs, front)
    given = await resolve(inputs, servers.results, context) if holds_reference(inputs) else inputs
    mended = checked(definition, given)
    if mended.problems:
        raise refusal(definition, mended, call=partial(front.execute, tool))
    sent = await servers.sender.send(
        server, definition, mended.inputs, request_key=request_key, context=context, arguments=inputs
    )
    origin = Origin(server.name, tool, sent.outcome, (*mended.notes, *sent.answer.notes), sent.replayed)
    limit = (_sized(server, context.meta) if context.meta else server).result_bytes
    try:
        if is_short(sent.answer, limit):
            return passed_on(sent.answer, origin)
        return await present(
            sent.answer, origin, limit=limit, context=context, results=servers.results, read_call=front.read
        )
    except MalformedResult as error:
        raise failures.malformed(server.name, tool, str(error)) from None


def _sized(server: ServerConfig, meta: Mapping[str, Any]) -> ServerConfig:
    """The server with the size of results that its caller asks for."""
    if meta.get(WHOLE) is True:
        return replace(server, result_bytes=0)
    wanted = meta.get(RESULT_BYTES)
    if type(wanted) is not int or wanted <= 0:
        return server
    return replace(server, result_bytes=min(wanted, server.result_bytes or wanted))


def _unnamed(server: ServerConfig, names: Sequence[str], front: Front) -> InvalidArguments:
    return InvalidArguments(
        f"`tool_name` is missing: which tool of `{server.name}` to execute. {_there_are(names)}",
        code=ErrorCode.VALIDATION_MISSING_PARAM,
        instruction="Name the tool. The call in `next` shows them all with their inputs.",
        next=front.list(),
    )


def unknown_tool(servers: Servers, server: ServerConfig, tool: str, inputs: JsonObject, front: Front) -> NotFound:
    names = [one.name for one in servers.known(server) or ()]
    close = nearest(_bare(tool), names, count=3)
    elsewhere = [name for name in servers.entries if servers.catalogue.find(name, tool) is not None]
    told = f"The server `{server.name}` has no tool `{tool[:80]}`."
    if close:
        told += f" The nearest are {', '.join(f'`{one}`' for one in close)}."
    elif elsewhere:
        told += f" {', '.join(f'`{one}`' for one in elsewhere[:3])} has one of that name."
    else:
        told += f" {_there_are(names)}"
    return NotFound(
        told,
        instruction="Send the call in `next` if that tool is meant." if close else "Look at its tools with `next`.",
        next=front.execute(close[0], inputs) if close else front.list(),
    )


def _bare(tool: str) -> str:
    """A name without the server before it, as it is in other listings."""
    return tool.rpartition("__")[2] or tool


def _there_are(names: Sequence[str]) -> str:
    if not names:
        return "It offers none."
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return f"There are {', '.join(f'`{name[:80]}`' for name in names[:_NAMES])}{more}."
