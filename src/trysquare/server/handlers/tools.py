"""Tools/list, tools/call and its short cut."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult
from mcp_types import SERVER_INFO_META_KEY
from pydantic_core import from_json

from trysquare.catalog import ProfileChoice
from trysquare.catalog.descriptions import compact_description
from trysquare.catalog.toolset import listed
from trysquare.core.call import call_resolved, direct_calls, get_tool
from trysquare.core.context import Principal
from trysquare.core.errors import InputRequired, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool
from trysquare.core.toolset import Toolset
from trysquare.server._sdk import connection_of
from trysquare.server.caller import McpCaller, call_context, principal_of, profiles_of
from trysquare.server.codec import RAW
from trysquare.server.convert import result_to_wire, tool_to_wire
from trysquare.server.handlers.base import list_page, questions_to_wire
from trysquare.server.options import ServeOptions
from trysquare.server.protocol import Request, answered, missing_capability
from trysquare.server.relay import relayed_to_wire

_LONG: Final = 1024 * 1024


class ToolHandlers:
    """Answers what clients ask about tools."""

    def __init__(self, toolset: Toolset, options: ServeOptions) -> None:
        self._toolset = toolset
        self._options = options
        self._direct = options.direct or direct_calls(toolset)

    async def list(self, request: Request, params: types.PaginatedRequestParams) -> JsonObject:
        """`tools/list`: what the profiles show of the toolsets that this principal may use."""
        tools = self._visible(profiles_of(request, self._options), principal_of(self._options))
        to_wire = functools.partial(tool_to_wire, describe=compact_description)
        return list_page("tools", tools, to_wire, key=_name, cursor=params.cursor, options=self._options)

    async def call(self, request: Request, params: types.CallToolRequestParams) -> JsonObject:
        """`tools/call`. An unknown name is an error of the protocol, whose text names the nearest tools."""
        answer = await self.answer(McpCaller(request), params.name, params.arguments, {})
        return from_json(answer) if isinstance(answer, bytes) else answer

    async def answer(
        self, caller: McpCaller, name: str, arguments: JsonObject | None, label: JsonObject
    ) -> JsonObject | bytes:
        """Call a tool and return its result, or the questions that the user has to answer.

        What another server answered comes as the bytes of a JSON object, with the label in its `_meta`.
        """
        context = call_context(caller, self._options, self._direct)
        try:
            tool = get_tool(self._toolset, name, context.principal)
            result = await call_resolved(tool, name, arguments, context)
        except InputRequired:
            return questions_to_wire(caller)
        if caller.waits:
            # The tool swallowed a question, such as one of several at the same time: it still needs the answer.
            return questions_to_wire(caller)
        # Protocol 2026-07-28 has an error of its own for this, with the missing capability.
        if caller.is_modern and (missing := missing_capability(result)):
            raise missing
        if result.relayed is None:
            return result_to_wire(result)
        meta = {**result.meta, **label} if label else result.meta
        work = functools.partial(_relayed, result.relayed, meta, modern=caller.is_modern)
        # A long one is looked through in a thread, so that the calls of others go on meanwhile.
        return await run_in_thread(work) if len(result.relayed) > _LONG else work()

    def schema_of(self, name: str) -> JsonObject | None:
        """The schema of a tool by its name, for checks that must not list all tools."""
        tool = self._toolset.find(name)
        return None if tool is None else tool.input_schema

    def _visible(self, profiles: ProfileChoice, principal: Principal) -> list[Tool]:
        return [tool for tool in listed(self._toolset, profiles) if principal.may_use(tool.metadata.toolset)]


def _relayed(body: bytes, label: Mapping[str, Any], *, modern: bool) -> JsonObject | bytes:
    try:
        return relayed_to_wire(body, label, modern=modern)
    except ToolError as error:
        return result_to_wire(Result.from_error(error))


def _name(tool: Tool) -> str:
    return tool.name


CALL: Final = "tools/call"
_PLAIN: Final = frozenset({"name", "arguments", "_meta"})


class PlainCallMiddleware:
    """A middleware of the SDK: a plain call is answered here, and everything else goes the SDK's way.

    The SDK reads the parameters twice and takes every result apart again, to fit it to the version of the protocol.
    Ours fit already, and the answer of another server is to pass unread.
    """

    def __init__(self, tools: ToolHandlers, options: ServeOptions) -> None:
        self.tools = tools
        self._stamp: JsonObject = {SERVER_INFO_META_KEY: _server_info(options)}
        self.carries_raw = False
        """Whether the transport writes its frames by `encode_frame`, which knows `RAW`."""

    async def __call__(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        if not is_plain(ctx.params) or not connection_of(ctx).initialize_accepted:
            return await call_next(ctx)
        answer = await self.answer(ctx)
        return answer if self.carries_raw or RAW not in answer else from_json(answer[RAW])

    async def answer(self, ctx: Request) -> JsonObject:
        """The result of a plain call as it is to be sent, or `RAW` and its bytes."""
        params: Any = ctx.params
        caller = McpCaller(ctx)
        label = self._stamp if caller.is_modern else {}
        work = self.tools.answer(caller, params["name"], params.get("arguments"), label)
        answer = await answered(CALL, work, modern=caller.is_modern)
        if isinstance(answer, bytes):
            return {RAW: answer}
        if caller.is_modern:
            answer["_meta"] = {**answer.get("_meta", {}), **label}
        else:
            del answer["resultType"]
        return answer


def is_plain(params: Mapping[str, Any] | None) -> bool:
    """Whether the parameters of a call are beyond doubt: a name, arguments, and nothing that the SDK has to look at."""
    if params is None or not params.keys() <= _PLAIN or not isinstance(params.get("name"), str):
        return False
    return isinstance(params.get("arguments", {}), (dict, type(None))) and isinstance(params.get("_meta", {}), dict)


def _server_info(options: ServeOptions) -> JsonObject:
    info = {"name": options.name, "title": options.title, "version": options.version}
    return {name: text for name, text in info.items() if text is not None}
