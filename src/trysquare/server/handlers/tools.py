"""Handlers of `tools/list` and `tools/call`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from trysquare.catalog.descriptions import compact_description
from trysquare.catalog.toolset import listed
from trysquare.core.call import call_resolved, direct_calls, get_tool
from trysquare.core.context import CallContext
from trysquare.core.errors import InputRequired, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool
from trysquare.core.toolset import Toolset
from trysquare.protocol.envelope import MirroredArguments, mirrored_arguments
from trysquare.protocol.methods import CallToolParams, ListParams
from trysquare.server.caller import McpCaller, Request, call_context, shown_to
from trysquare.server.convert import missing_capability, relayed_to_wire, result_to_wire, tool_to_wire
from trysquare.server.handlers.base import list_page, questions_to_wire
from trysquare.server.options import ServeOptions

if TYPE_CHECKING:
    from trysquare.server.handlers.tasks import TaskHandlers

_LONG: Final = 1024 * 1024


class ToolHandlers:
    """Answers what clients ask about tools."""

    def __init__(self, toolset: Toolset, options: ServeOptions, stamp: JsonObject) -> None:
        self._toolset = toolset
        self._options = options
        self._direct = options.direct or direct_calls(toolset)
        self._stamp = stamp
        self.tasks: TaskHandlers | None = None
        """What runs calls as tasks; None where tasks cannot be kept."""
        self._mirrored: dict[str, tuple[Tool, MirroredArguments]] = {}

    async def list(self, request: Request) -> JsonObject:
        """`tools/list`: what the profiles show of the toolsets that this principal may use."""
        params: ListParams = request.params
        may_use = request.principal.may_use
        tools = [tool for tool in listed(self._toolset, request.profiles) if may_use(tool.metadata.toolset)]
        to_wire = functools.partial(tool_to_wire, describe=compact_description)
        return list_page("tools", tools, to_wire, key=_name, cursor=params.cursor, size=self._options.page_size)

    async def call(self, request: Request) -> JsonObject | bytes:
        """`tools/call`. An unknown name is an error of the protocol, whose text names the nearest tools."""
        params: CallToolParams = request.params
        tool = get_tool(self._toolset, params.name, request.principal, params.arguments)
        options = tool.metadata.task
        if (
            options is not None
            and self.tasks is not None
            and (options.required or "extensions" in request.capabilities)
        ) and self.tasks.becomes_task(tool.name, options, request):
            return await self.tasks.call(options, tool.metadata, request)
        return await self.run(tool, McpCaller(request))

    async def run(self, tool: Tool, caller: McpCaller, task_id: str | None = None) -> JsonObject | bytes:
        """What the call of a tool is answered with: its result, or questions."""
        request, params = caller.request_context, caller.request_context.params
        context = self.context(caller, task_id)
        try:
            result = await call_resolved(tool, params.name, params.arguments, context)
        except InputRequired:
            return questions_to_wire(caller)
        if not result.success:
            result = shown_to(request, result)
        if caller.waits:
            # The tool swallowed a question, such as one of several at the same time: it still needs the answer.
            return questions_to_wire(caller)
        # Protocol 2026-07-28 has an error of its own for this, with the missing capability.
        if request.is_stateless and (missing := missing_capability(result)):
            raise missing
        if result.relayed is None:
            return result_to_wire(result)
        return await self._relay(request, result.relayed, result.meta)

    def context(self, caller: McpCaller, task_id: str | None = None) -> CallContext:
        """What a call may use."""
        return call_context(caller, self._options, self._direct, task_id)

    async def _relay(self, request: Request, body: bytes, meta: Mapping[str, Any]) -> JsonObject | bytes:
        """What another server answered, as the bytes that it sent, with our label in its `_meta`."""
        label = {**meta, **self._stamp} if request.is_stateless else meta
        work = functools.partial(_relayed, body, label, modern=request.is_stateless)
        # A long one is looked through in a thread, so that the calls of others go on meanwhile.
        return await run_in_thread(work) if len(body) > _LONG else work()

    def mirrored(self, name: str) -> MirroredArguments:
        """The arguments that a tool has repeated in HTTP headers."""
        tool = self._toolset.find(name)
        if tool is None:
            return ()
        known = self._mirrored.get(name)
        if known is None or known[0] is not tool:
            known = self._mirrored[name] = (tool, mirrored_arguments(tool.input_schema))
        return known[1]


def _relayed(body: bytes, label: Mapping[str, Any], *, modern: bool) -> JsonObject | bytes:
    try:
        return relayed_to_wire(body, label, modern=modern)
    except ToolError as error:
        return result_to_wire(Result.from_error(error))


def _name(tool: Tool) -> str:
    return tool.name
