"""Requests about tools: `tools/list` and `tools/call`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types

from trysquare.catalog.describe import compact_description
from trysquare.catalog.profiles import ProfileChoice, listed
from trysquare.core.call import call_tool, direct_calls, found_tool
from trysquare.core.context import Principal
from trysquare.core.errors import InputRequired, NotFound, ToolError
from trysquare.core.tool import Tool
from trysquare.core.toolset import Toolset
from trysquare.core.types import JsonObject
from trysquare.serve.caller import McpCaller
from trysquare.serve.contexts import call_context, principal_of, profiles_of
from trysquare.serve.eras import Request, is_modern
from trysquare.serve.listings import page_of, page_to_wire
from trysquare.serve.options import ServeOptions
from trysquare.serve.protocol_errors import missing_capability, protocol_error
from trysquare.wire.questions import request_to_wire
from trysquare.wire.results import result_to_wire
from trysquare.wire.tools import tool_to_wire


class ToolRequests:
    """Answers what clients ask about tools."""

    def __init__(self, toolset: Toolset, options: ServeOptions) -> None:
        self._toolset = toolset
        self._options = options
        self._direct = options.direct or direct_calls(toolset)

    async def list(self, request: Request, params: types.PaginatedRequestParams) -> JsonObject:
        """`tools/list`: what the profiles show of the rooms that this principal may use."""
        principal = principal_of(self._options)
        tools = self._visible(profiles_of(request, self._options), principal)
        try:
            page, following = page_of(tools, key=_name, cursor=params.cursor, size=self._options.page_size)
        except ToolError as error:
            raise protocol_error(error) from None
        return page_to_wire("tools", [tool_to_wire(tool, compact_description) for tool in page], following, principal)

    async def call(self, request: Request, params: types.CallToolRequestParams) -> JsonObject:
        """`tools/call`. An unknown name is an error of the protocol, whose text names the nearest tools."""
        return await self.answer(request, params.name, params.arguments)

    async def answer(self, request: Request, name: str, arguments: Mapping[str, Any] | None) -> JsonObject:
        """Call a tool and tell what came of it: its result, or the questions that a person has to answer."""
        context = call_context(request, self._options, self._direct)
        try:
            found_tool(self._toolset, name, context.principal)
        except NotFound as error:
            raise protocol_error(error) from None
        try:
            result = await call_tool(self._toolset, name, arguments, context)
        except InputRequired as needed:
            return questions_to_wire(context.caller, needed)
        if is_modern(request) and (error := missing_capability(result)):
            raise error
        return result_to_wire(result)

    def schema_of(self, name: str) -> JsonObject | None:
        """The schema of a tool by its name, for checks that must not list all tools."""
        tool = self._toolset.find(name)
        return None if tool is None else tool.input_schema

    def _visible(self, profiles: ProfileChoice, principal: Principal) -> list[Tool]:
        return [tool for tool in listed(self._toolset, profiles) if principal.may_use(tool.metadata.room)]


def questions_to_wire(caller: object, needed: InputRequired) -> JsonObject:
    """The result that has the client put questions to the person and call again. Only `McpCaller` raises it here."""
    if not isinstance(caller, McpCaller):
        raise TypeError("a question was raised by a caller that cannot put it to a client") from needed
    requests = {key: request_to_wire(question) for key, question in needed.questions.items()}
    state = caller.answers.state_for(needed.questions)
    return {"resultType": "input_required", "inputRequests": requests, "requestState": state}


def _name(tool: Tool) -> str:
    return tool.name
