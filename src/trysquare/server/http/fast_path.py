"""QUARANTINE: tools/call without the SDK's streams, guarded by SDK version."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import anyio
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER, check_accept_headers
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_PROTOCOL_VERSION_HEADER,
    InboundModernRoute,
    classify_inbound_request,
    x_mcp_header_map,
)
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    DEFAULT_NEGOTIATED_VERSION,
    REQUEST_TIMEOUT,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    RequestId,
    RequestParams,
    RequestParamsMeta,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.requests import Request
from starlette.requests import Request as HttpRequest
from starlette.types import Receive, Scope, Send

from trysquare.core.concurrency import TimeoutScheduler
from trysquare.core.json import JsonObject
from trysquare.server.codec import encode_frame, encode_result
from trysquare.server.handlers.tools import CALL, is_plain
from trysquare.server.notifications import SESSION_HEADER, HttpSession, NotificationHub, owner_of, session_id
from trysquare.server.protocol import MODERN
from trysquare.server.protocol import Request as Request_http_calls
from trysquare.server.server import TrysquareServer

_QUICK: Final = 0.1
"""Seconds after which a call is looked after: most are answered before."""
_PING_INTERVAL: Final = 15.0
"""Seconds of silence after which a proxy might close the connection."""
_PING: Final = b": ping\r\n\r\n"
_STREAM: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


class HttpResponder:
    """One call over HTTP: answered with plain JSON, or with a stream of events once there is more to tell than that.

    It is the SDK's `DispatchContext`: progress, log lines and questions go through it.
    """

    def __init__(
        self,
        request: Request,
        receive: Receive,
        send: Send,
        request_id: RequestId,
        session: HttpSession | None,
        timeouts: TimeoutScheduler,
    ) -> None:
        self.request_id = request_id
        self.progress_token: str | int | None = None
        self.is_over = False
        """Whether nobody waits for the answer any more."""
        self._request = request
        self._receive = receive
        self._send = send
        self._session = session
        self._timeouts = timeouts
        self._sending: asyncio.Lock | None = None
        self._streams = False
        self._answered = False
        self._task = asyncio.current_task()
        self._attending: asyncio.Task[None] | None = None
        timeouts.schedule(self, _QUICK, self._attend)

    @property
    def can_send_request(self) -> bool:
        return self._session is not None

    @property
    def transport(self) -> TransportContext:
        can_send = self.can_send_request
        return TransportContext(kind="streamable-http", can_send_request=can_send, headers=self._request.headers)

    @property
    def message_metadata(self) -> ServerMessageMetadata:
        return ServerMessageMetadata(request_context=self._request)

    @property
    def cancel_requested(self) -> anyio.Event:
        event = anyio.Event()
        if self.is_over:
            event.set()
        return event

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        if self._session is None:
            raise NoBackChannelError(method)
        with self._session.asking() as (request_id, answer):
            request = JSONRPCRequest(jsonrpc="2.0", id=request_id, method=method, params=dict(params or {}))
            await self._tell(encode_frame(request))
            try:
                async with asyncio.timeout((opts or {}).get("timeout")):
                    return await answer
            except TimeoutError:
                raise MCPError(code=REQUEST_TIMEOUT, message=f"The client did not answer {method} in time.") from None

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        message = JSONRPCNotification(jsonrpc="2.0", method=method, params=None if params is None else dict(params))
        await self._tell(encode_frame(message))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self.progress_token is None:
            return
        params: JsonObject = {"progressToken": self.progress_token, "progress": progress}
        optional = {"total": total, "message": message}
        params |= {name: value for name, value in optional.items() if value is not None}
        await self.notify("notifications/progress", params)

    async def answer(self, frame: bytes, status: int = 200) -> None:
        """Send the answer and end."""
        self._answered = True
        if self._streams:
            await self._tell(frame, is_last=True)
            return
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(frame)),
            *self._own_headers(),
        ]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": frame})

    async def end(self) -> None:
        """End without an answer, after `cancel` has done its work."""
        if self._task is not None:
            self._task.uncancel()
        if not self._answered:
            await self._write(b"", is_last=True)

    def cancel(self) -> None:
        """Stop the call: nobody waits for it any more."""
        self.is_over = True
        if self._task is not None:
            self._task.cancel()

    def close(self) -> None:
        """Stop looking after the call."""
        self._timeouts.cancel(self)
        if self._attending is not None:
            self._attending.cancel()

    async def _tell(self, frame: bytes, *, is_last: bool = False) -> None:
        await self._write(b"event: message\r\ndata: %b\r\n\r\n" % frame.rstrip(b"\n"), is_last=is_last)

    async def _write(self, event: bytes, *, is_last: bool = False) -> None:
        if self._sending is None:
            self._sending = asyncio.Lock()
        async with self._sending:
            if not self._streams:
                self._streams = True
                headers = [*_STREAM, *self._own_headers()]
                await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            await self._send({"type": "http.response.body", "body": event, "more_body": not is_last})

    def _own_headers(self) -> list[tuple[bytes, bytes]]:
        return [] if self._session is None else [(SESSION_HEADER, self._session.id.encode())]

    def _attend(self) -> None:
        self._attending = asyncio.get_running_loop().create_task(self._look_after())

    async def _look_after(self) -> None:
        """Keep the connection of a long call open, and see its client go away."""
        while True:
            try:
                async with asyncio.timeout(_PING_INTERVAL):
                    event = await self._receive()
            except TimeoutError:
                await self._write(_PING)
                continue
            if event["type"] == "http.disconnect":
                break
        # In a session, a lost connection does not take the call back; only the client's word does.
        if self._session is None:
            self.cancel()


# Who may call has been decided before: this stands behind the checks of Host, Origin and token. A request that is in
# any way unusual, or wrong, is left to the SDK before anything of it has been done, so that its answers stay the
# SDK's.


class FastCall(NamedTuple):
    """A call that is answered here: who makes it, over which connection, and in which session if it has one."""

    message: JSONRPCRequest
    meta: RequestParamsMeta | None
    connection: Connection
    hub: NotificationHub
    session: HttpSession | None


class FastPath:
    """Answers plain calls of both eras."""

    def __init__(self, server: TrysquareServer, *, stateless: bool) -> None:
        self._server = server
        self._stateless = stateless
        self._annotated: dict[str, tuple[JsonObject, bool]] = {}

    def session_of(self, scope: Scope) -> HttpSession | None:
        """The session of a request, if it names one that is open and belongs to the same caller."""
        given, hub = session_id(scope), self._server.hub
        if given is None or hub is None:
            return None
        session = hub.http_sessions.get(given)
        return session if session is not None and session.owner == owner_of(scope) else None

    def match(self, scope: Scope, message: JSONRPCMessage, session: HttpSession | None) -> FastCall | None:
        """The call that a request makes, or None for one that the SDK answers."""
        if not isinstance(message, JSONRPCRequest) or message.method != CALL or not is_plain(message.params):
            return None
        hub, headers = self._server.hub, _call_headers(scope)
        if hub is None or headers is None:
            return None
        connection = self._connection(message, headers, session)
        if connection is None or (connection.protocol_version in MODERN and self._repeats_arguments(message)):
            return None
        try:
            meta = _meta_of(message.params)
        except ValidationError:
            return None
        own = session if session is not None and connection is session.connection else None
        return FastCall(message, meta, connection, hub, own)

    async def answer(self, call: FastCall, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the tool and send what came of it."""
        request, session = HttpRequest(scope), call.session
        exchange = HttpResponder(request, receive, send, call.message.id, session, call.hub.timeouts)
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


def _call_headers(scope: Scope) -> dict[str, str] | None:
    """The headers of a call by name; None where the SDK has to look at them.

    That is where one comes twice, since two readers might take different ones; where the body is not JSON; and where
    the client does not accept both JSON and events, since the tool decides which of them it gets.
    """
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    is_json = headers.get("content-type", "").lower().startswith("application/json")
    if len(headers) != len(scope["headers"]) or not is_json or not _accepts_all(headers.get("accept", "")):
        return None
    return headers


# A client sends the same with every request.
@lru_cache(maxsize=256)
def _accepts_all(accept: str) -> bool:
    asked = HttpRequest({"type": "http", "headers": [(b"accept", accept.encode("latin-1"))]})
    return check_accept_headers(asked) == (True, True)


def _refusal(request_id: RequestId, error: MCPError, ctx: Request_http_calls) -> tuple[bytes, int]:
    status = ERROR_CODE_HTTP_STATUS.get(error.code, 200) if ctx.protocol_version in MODERN else 200
    return encode_frame(JSONRPCError(jsonrpc="2.0", id=request_id, error=error.error)), status


def _context(call: FastCall, request: HttpRequest, exchange: HttpResponder) -> Request_http_calls:
    return ServerRequestContext(
        session=ServerSession(exchange, call.connection, request_meta=call.meta),
        lifespan_context=call.hub,
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
