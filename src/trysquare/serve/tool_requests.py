"""Requests about tools: `tools/list` and `tools/call`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

import mcp_types as types
from pydantic_core import from_json

from trysquare.catalog.describe import compact_description
from trysquare.catalog.profiles import ProfileChoice, listed
from trysquare.core.call import call_found, direct_calls, found_tool
from trysquare.core.context import Principal
from trysquare.core.errors import InputRequired, ToolError
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool
from trysquare.core.toolset import Toolset
from trysquare.core.types import JsonObject
from trysquare.serve.caller import McpCaller
from trysquare.serve.contexts import call_context, principal_of, profiles_of
from trysquare.serve.early_calls import BegunCalls
from trysquare.serve.eras import Request, is_modern
from trysquare.serve.listings import page_of, page_to_wire
from trysquare.serve.options import ServeOptions
from trysquare.serve.protocol_errors import missing_capability
from trysquare.wire.relayed import relayed_to_wire
from trysquare.wire.results import result_to_wire
from trysquare.wire.tools import tool_to_wire

_LONG: Final = 1024 * 1024


class ToolRequests:
    """Answers what clients ask about tools."""

    def __init__(self, toolset: Toolset, options: ServeOptions) -> None:
        self._toolset = toolset
        self._options = options
        self._direct = options.direct or direct_calls(toolset)
        self.begun: BegunCalls | None = None
        """Calls that were begun before there was a server."""

    async def list(self, request: Request, params: types.PaginatedRequestParams) -> JsonObject:
        """`tools/list`: what the profiles show of the rooms that this principal may use."""
        principal = principal_of(self._options)
        tools = self._visible(profiles_of(request, self._options), principal)
        page, following = page_of(tools, key=_name, cursor=params.cursor, size=self._options.page_size)
        return page_to_wire("tools", [tool_to_wire(tool, compact_description) for tool in page], following, principal)

    async def call(self, request: Request, params: types.CallToolRequestParams) -> JsonObject:
        """`tools/call`. An unknown name is an error of the protocol, whose text names the nearest tools."""
        answer = await self.answer(request, params.name, params.arguments, {})
        return from_json(answer) if isinstance(answer, bytes) else answer

    async def answer(
        self, request: Request, name: str, arguments: JsonObject | None, label: JsonObject
    ) -> JsonObject | bytes:
        """Call a tool and tell what came of it: its result, or the questions that a person has to answer.

        What another server answered comes as the bytes of a JSON object, with the label in its `_meta`.
        """
        context = call_context(request, self._options, self._direct)
        begun = None
        if self.begun is not None and isinstance(context.caller, McpCaller):
            begun = self.begun.take_up(request.request_id, context.caller)
        try:
            if begun is not None:
                result = await begun
            else:
                tool = found_tool(self._toolset, name, context.principal)
                result = await call_found(tool, name, arguments, context)
        except InputRequired:
            return questions_to_wire(context.caller)
        if isinstance(context.caller, McpCaller) and context.caller.waits:
            # The tool has kept a question from us, such as one of several at the same time: it needs the answer still.
            return questions_to_wire(context.caller)
        # The new era has an error of its own for this, by which a client can learn to declare more.
        if is_modern(request) and (missing := missing_capability(result)):
            raise missing
        if result.relayed is None:
            return result_to_wire(result)
        told = {**result.meta, **label} if label else result.meta
        work = functools.partial(_relayed, result.relayed.body, told, modern=is_modern(request))
        # A long one is looked through in a thread, so that the calls of others go on meanwhile.
        return await run_in_thread(work) if len(result.relayed.body) > _LONG else work()

    def schema_of(self, name: str) -> JsonObject | None:
        """The schema of a tool by its name, for checks that must not list all tools."""
        tool = self._toolset.find(name)
        return None if tool is None else tool.input_schema

    def _visible(self, profiles: ProfileChoice, principal: Principal) -> list[Tool]:
        return [tool for tool in listed(self._toolset, profiles) if principal.may_use(tool.metadata.room)]


def questions_to_wire(caller: object) -> JsonObject:
    """The result that has the client put all open questions to the user and call again."""
    if not isinstance(caller, McpCaller):
        raise TypeError("a question was raised by a caller that cannot put it to a client")
    answers = caller.answers
    return {"resultType": "input_required", "inputRequests": answers.wire(), "requestState": answers.state()}


def _relayed(body: bytes, label: Mapping[str, Any], *, modern: bool) -> JsonObject | bytes:
    try:
        return relayed_to_wire(body, label, modern=modern)
    except ToolError as error:
        return result_to_wire(Result.from_error(error))


def _name(tool: Tool) -> str:
    return tool.name
