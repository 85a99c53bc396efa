"""Calls over HTTP that are answered directly, without the tasks and streams that the SDK has for every request.

Who may call has been decided before: this stands behind the checks of Host, Origin and token. A request that is in any
way unusual, or wrong, is left to the SDK before anything of it has been done, so that its answers stay the SDK's.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_PROTOCOL_VERSION_HEADER,
    InboundModernRoute,
    classify_inbound_request,
    x_mcp_header_map,
)
from mcp_types import (
    DEFAULT_NEGOTIATED_VERSION,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    RequestId,
    RequestParams,
    RequestParamsMeta,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.requests import Request as HttpRequest
from starlette.types import Receive, Scope, Send

from trysquare.core.types import JsonObject
from trysquare.serve.eras import MODERN, Request
from trysquare.serve.exchanges import Exchange
from trysquare.serve.frames import encode_frame, encode_result
from trysquare.serve.heads import call_head, session_id
from trysquare.serve.http_sessions import HttpSession, owner_of
from trysquare.serve.server import TrysquareServer
from trysquare.serve.switchboard import Switchboard
from trysquare.serve.tool_calls import CALL, is_plain


class DirectCall(NamedTuple):
    """A call that is answered here: who makes it, over which connection, and in which session if it has one."""

    message: JSONRPCRequest
    meta: RequestParamsMeta | None
    connection: Connection
    switchboard: Switchboard
    session: HttpSession | None


class HttpCalls:
    """Answers plain calls of both eras."""

    def __init__(self, server: TrysquareServer, *, stateless: bool) -> None:
        self._server = server
        self._stateless = stateless
        self._annotated: dict[str, tuple[JsonObject, bool]] = {}

    def session_of(self, scope: Scope) -> HttpSession | None:
        """The session of a request, if it names one that is open and belongs to the same caller."""
        given, switchboard = session_id(scope), self._server.switchboard
        if given is None or switchboard is None:
            return None
        session = switchboard.http_sessions.get(given)
        return session if session is not None and session.owner == owner_of(scope) else None

    def taken(self, scope: Scope, message: JSONRPCMessage, session: HttpSession | None) -> DirectCall | None:
        """The call that a request makes, or None for one that the SDK answers."""
        if not isinstance(message, JSONRPCRequest) or message.method != CALL or not is_plain(message.params):
            return None
        switchboard, head = self._server.switchboard, call_head(scope)
        if switchboard is None or head.headers is None or not head.is_acceptable:
            return None
        connection = self._connection(message, head.headers, session)
        if connection is None or (connection.protocol_version in MODERN and self._repeats_arguments(message)):
            return None
        try:
            meta = _meta_of(message.params)
        except ValidationError:
            return None
        own = session if session is not None and connection is session.connection else None
        return DirectCall(message, meta, connection, switchboard, own)

    async def answer(self, call: DirectCall, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the tool and send what came of it."""
        request, session = HttpRequest(scope), call.session
        exchange = Exchange(request, receive, send, call.message.id, session, call.switchboard.alarms)
        if call.meta is not None:
            exchange.progress_token = call.meta.get("progress_token")
        try:
            if session is not None:
                session.begin(call.message.id, exchange)
            try:
                ctx = _context(call, request, exchange)
                try:
                    result: Any = await self._server.answer_call(ctx)
                    frame, status = encode_result(call.message.id, result), 200
                except MCPError as error:
                    frame, status = _refusal(call.message.id, error, ctx)
                await exchange.answer(frame, status)
            finally:
                if session is not None:
                    session.end_call(call.message.id)
        except asyncio.CancelledError:
            if not exchange.is_over:
                raise
            await exchange.end()
        finally:
            exchange.close()
            if session is None:
                await call.connection.exit_stack.aclose()

    def _connection(
        self, message: JSONRPCRequest, headers: dict[str, str], session: HttpSession | None
    ) -> Connection | None:
        version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
        if version in MODERN:
            return _modern_connection(message, headers)
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            return None
        if session is not None:
            return session.connection if version in (None, session.connection.protocol_version) else None
        if self._stateless and MCP_SESSION_ID_HEADER not in headers:
            return Connection.from_envelope(version or DEFAULT_NEGOTIATED_VERSION, None, None)
        return None

    def _repeats_arguments(self, message: JSONRPCRequest) -> bool:
        """Whether the tool wants arguments repeated as headers, which the SDK compares."""
        params: Any = message.params
        lookup = self._server.get_tool_input_schema
        schema: Any = None if lookup is None else lookup(params["name"])
        if schema is None:
            return False
        known = self._annotated.get(params["name"])
        if known is None or known[0] is not schema:
            known = self._annotated[params["name"]] = (schema, bool(x_mcp_header_map(schema)))
        return known[1]


def _refusal(request_id: RequestId, error: MCPError, ctx: Request) -> tuple[bytes, int]:
    status = ERROR_CODE_HTTP_STATUS.get(error.code, 200) if ctx.protocol_version in MODERN else 200
    return encode_frame(JSONRPCError(jsonrpc="2.0", id=request_id, error=error.error)), status


def _context(call: DirectCall, request: HttpRequest, exchange: Exchange) -> Request:
    return ServerRequestContext(
        session=ServerSession(exchange, call.connection, request_meta=call.meta),
        lifespan_context=call.switchboard,
        protocol_version=call.connection.protocol_version,
        method=call.message.method,
        params=call.message.params,
        request_id=call.message.id,
        meta=call.meta,
        request=request,
    )


def _meta_of(params: Any) -> RequestParamsMeta | None:
    """What a call says of itself. Raises a `ValidationError` where that does not fit the protocol."""
    return RequestParams.model_validate(params, by_name=False).meta if "_meta" in params else None


def _modern_connection(message: JSONRPCRequest, headers: dict[str, str]) -> Connection | None:
    route = classify_inbound_request({"method": message.method, "params": message.params}, headers=headers)
    if not isinstance(route, InboundModernRoute):
        return None
    return Connection.from_envelope(route.protocol_version, route.client_info, route.client_capabilities)
