"""Tool calls: `tools/call` answered without the checks that our own results do not need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp.server.context import CallNext, HandlerResult
from mcp_types import SERVER_INFO_META_KEY
from pydantic_core import from_json

from trysquare.core.call import contained
from trysquare.core.errors import ToolError
from trysquare.core.types import JsonObject
from trysquare.serve.eras import Request, connection_of, is_modern
from trysquare.serve.frames import RAW
from trysquare.serve.options import ServeOptions
from trysquare.serve.protocol_errors import protocol_error
from trysquare.serve.tool_requests import ToolRequests

CALL: Final = "tools/call"
_PLAIN: Final = frozenset({"name", "arguments", "_meta"})


class ToolCalls:
    """A middleware of the SDK: a plain call is answered here, and everything else goes the SDK's way.

    The SDK reads the parameters twice and takes every result apart again, to fit it to the version of the protocol.
    Ours fit already, and the answer of another server is to pass unread.
    """

    def __init__(self, tools: ToolRequests, options: ServeOptions) -> None:
        self.tools = tools
        self._stamp: JsonObject = {SERVER_INFO_META_KEY: _server_info(options)}
        self.carries_raw = False
        """Whether the transport writes its frames by `encode_frame`, which knows `RAW`."""

    async def __call__(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        if ctx.method != CALL or not is_plain(ctx.params) or not connection_of(ctx).initialize_accepted:
            return await call_next(ctx)
        answer = await self.answer(ctx)
        return answer if self.carries_raw or RAW not in answer else from_json(answer[RAW])

    async def answer(self, ctx: Request) -> JsonObject:
        """The result of a plain call as it is to be sent, or `RAW` and its bytes."""
        params: Any = ctx.params
        modern = is_modern(ctx)
        label = self._stamp if modern else {}
        try:
            work = self.tools.answer(ctx, params["name"], params.get("arguments"), label)
            answer = await contained(CALL, work)
        except ToolError as error:
            raise protocol_error(error, modern=modern) from None
        if isinstance(answer, bytes):
            return {RAW: answer}
        if modern:
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
