"""The MCP endpoint over HTTP: requests of both protocol versions, sessions, and streams of events."""

from __future__ import annotations

import asyncio
import re
from functools import lru_cache, partial
from typing import Any, Final
from urllib.parse import parse_qs

from msgspec import UNSET, Raw

from trysquare.catalog import ProfileChoice, parse_profiles
from trysquare.core.concurrency import TimeoutScheduler
from trysquare.core.context import Principal
from trysquare.core.errors import ConfigurationError
from trysquare.protocol.envelope import (
    SESSION_HEADER,
    VERSION_HEADER,
    envelope_version,
    require_headers,
    require_mirrored,
    require_version,
)
from trysquare.protocol.messages import (
    HEADER_MISMATCH,
    HTTP_STATUS,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Message,
    RequestId,
    RpcError,
    decode,
    decode_batch,
    decode_each,
    encode_error,
    member,
)
from trysquare.protocol.methods import CLIENT_REQUESTS, cancelled_id
from trysquare.protocol.versions import ASSUMED_VERSION, HANDSHAKE_VERSIONS, VERSIONS
from trysquare.server.caller import Request
from trysquare.server.http.exchange import (
    JSON,
    BodyTooLarge,
    ClientGone,
    Exchange,
    Receive,
    Scope,
    Send,
)
from trysquare.server.http.responder import Responder
from trysquare.server.http.sessions import HttpSession, SessionRegistry, SessionUse
from trysquare.server.http.streams import EventStream, hold
from trysquare.server.server import McpServer, Route

PRINCIPAL: Final = "trysquare.principal"
"""Where the scope of a request has the principal of its token."""
_JSON_TYPE: Final = "application/json"
_EVENT_TYPE: Final = "text/event-stream"
_REFUSED: Final = re.compile(r"q\s*=\s*0(\.0{0,3})?")
"""The weight in an `Accept` header of what is not acceptable."""


class Refusal(Exception):
    """An HTTP status, and what to tell the client."""

    def __init__(self, status: int, text: str, headers: list[tuple[bytes, bytes]] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers or []


class McpEndpoint:
    """An ASGI application that serves one MCP server at one path. Who may call was decided in front of it."""

    def __init__(self, server: McpServer, *, stateless: bool, max_body: int, session_idle: float) -> None:
        self._server = server
        self._is_stateless = stateless
        self._max_body = max_body
        self._sessions = SessionRegistry(session_idle, server.hub.remove)
        self._timeouts = TimeoutScheduler()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, send)
        self._server.hub.start()
        version = exchange.headers.get(VERSION_HEADER)
        is_modern = version is not None and version not in HANDSHAKE_VERSIONS
        try:
            if exchange.method == "POST":
                await self._post(exchange, is_modern=is_modern)
            elif is_modern or self._is_stateless or exchange.method not in ("GET", "DELETE"):
                allowed = b"POST" if is_modern or self._is_stateless else b"GET, POST, DELETE"
                raise Refusal(405, "Method Not Allowed", [(b"allow", allowed)])
            elif exchange.method == "GET":
                await self._get(exchange, self._session(exchange))
            else:
                session = self._session(exchange)
                self._sessions.end(session)
                await exchange.reply(200, session.headers)
        except Refusal as refusal:
            code = INTERNAL_ERROR if refusal.status >= 500 else INVALID_REQUEST
            body = encode_error(RpcError(code, str(refusal)), None)
            await exchange.reply(refusal.status, [JSON, *refusal.headers], body)
        except ClientGone:
            await exchange.reply(408, [(b"connection", b"close")])

    def close(self) -> None:
        """End all sessions and streams."""
        self._server.hub.close()
        self._sessions.close()

    async def _post(self, exchange: Exchange, *, is_modern: bool) -> None:
        if not _accepts(exchange.headers.get("accept", "*/*"), _JSON_TYPE, _EVENT_TYPE):
            raise Refusal(406, "Not Acceptable: accept application/json and text/event-stream.")
        if not _is_json(exchange.headers.get("content-type", "")):
            raise Refusal(400, "Bad Request: send `Content-Type: application/json`.")
        try:
            body = await exchange.body(self._max_body, self._timeouts)
        except BodyTooLarge:
            raise Refusal(413, f"Content Too Large: the limit is {self._max_body} bytes.") from None
        try:
            if is_modern:
                await self._stateless_request(exchange, decode(body))
            else:
                await self._session_message(exchange, body)
        except RpcError as error:
            await _reply_error(exchange, error, error.request_id)

    async def _stateless_request(self, exchange: Exchange, message: Message) -> None:
        """Answer a request of 2026-07-28, which stands alone."""
        if message.method is UNSET:
            raise RpcError(INVALID_REQUEST, "The body must be a request or a notification.")
        if message.id is UNSET:
            require_version(exchange.headers.get(VERSION_HEADER, ""))
            await exchange.reply(202, [])
            return
        request_id: Any = message.id
        try:
            route, params = self._read_stateless(exchange, message, message.method)
        except RpcError as error:
            await _reply_error(exchange, error, request_id)
            return
        await self._answer(exchange, message.method, route, params, request_id, None)

    def _read_stateless(self, exchange: Exchange, message: Message, method: str) -> tuple[Route | None, Any]:
        if exchange.repeated and any(name.startswith("mcp-") for name in exchange.repeated):
            raise RpcError(HEADER_MISMATCH, "A header that begins with Mcp- appears more than once.")
        named_by = CLIENT_REQUESTS[method].named_by if method in CLIENT_REQUESTS else None
        try:
            route, params = self._server.read(message, stateless=True)
        except RpcError:
            # What is wrong with the headers comes before what is wrong with the parameters.
            named = None if named_by is None else member(message.params, named_by)
            require_headers(exchange.headers, envelope_version(member(message.params, "_meta")), method, named)
            raise
        version, named = envelope_version(params.meta), None if named_by is None else getattr(params, named_by, None)
        require_headers(exchange.headers, version, method, named)
        require_version(version)
        if route is not None and method == "tools/call":
            wanted = self._server.tools.mirrored(params.name)
            if wanted:
                require_mirrored(wanted, params.arguments, exchange.headers)
        return route, params

    async def _session_message(self, exchange: Exchange, body: bytes) -> None:
        """Take a message of a version with a handshake: of a session, or one that opens a session."""
        batch = decode_batch(body)
        if batch is not None:
            session = self._alone(exchange) if self._is_stateless else self._session(exchange)
            with session.begin_use() as use:
                await self._batch(exchange, use, batch)
            return
        message = decode(body)
        is_opening = message.method == "initialize" and SESSION_HEADER not in exchange.headers
        session = self._session_of(exchange, is_opening=is_opening)
        with session.begin_use() as use:
            if message.method is UNSET or message.id is UNSET:
                self._take(session, message)
                await exchange.reply(202, session.headers)
                return
            request_id: Any = message.id
            try:
                route, params = self._read_in(session, message, request_id)
            except RpcError as error:
                if is_opening:
                    self._sessions.end(session)
                await exchange.reply(
                    200, [JSON] if is_opening else session.json_headers, encode_error(error, request_id)
                )
                return
            await self._answer(exchange, message.method, route, params, request_id, use)

    def _read_in(self, session: HttpSession, message: Message, request_id: RequestId) -> tuple[Route | None, Any]:
        if request_id in session.running:
            raise RpcError(INVALID_REQUEST, "A request with this `id` is still open.")
        return self._server.read(message, stateless=False)

    async def _batch(self, exchange: Exchange, use: SessionUse, batch: list[Raw]) -> None:
        """Answer the messages of a batch (2025-03-26), each response as an event of one stream."""
        session = use.session
        version = VERSIONS.get(session.version or "")
        if version is None or not version.has_batches:
            raise RpcError(INVALID_REQUEST, "A message is one JSON object; this protocol version has no batches.")
        requests, errors = decode_each(batch, partial(self._take, session))
        if not requests and not errors:
            await exchange.reply(202, session.headers)
            return
        profiles = self._profiles(exchange)
        stream = session.open_stream(exchange)
        watch = Responder(exchange, use, self._timeouts, stream)
        try:
            for error in errors:
                await stream.send(encode_error(error, error.request_id))
            async with asyncio.TaskGroup() as tasks:
                for one in requests:
                    tasks.create_task(self._answer_in(stream, exchange, use, one, profiles))
        finally:
            watch.close()
        await stream.finish()

    async def _answer_in(
        self, stream: EventStream, exchange: Exchange, use: SessionUse, message: Message, profiles: ProfileChoice
    ) -> None:
        request_id: Any = message.id
        try:
            route, params = self._read_in(use.session, message, request_id)
        except RpcError as error:
            await stream.send(encode_error(error, request_id))
            return
        responder = use.session.running[request_id] = Responder(exchange, use, self._timeouts, stream, watches=False)
        try:
            request = self._request(exchange, str(message.method), params, request_id, use.session, responder, profiles)
            reply = await self._server.respond(route, request)
            responder.close()
            if not responder.is_cancelled:
                await stream.send(reply.body)
        except asyncio.CancelledError:
            if not responder.is_cancelled:
                raise
        finally:
            responder.close()
            use.session.running.pop(request_id, None)

    def _take(self, session: HttpSession, message: Message) -> None:
        """Take a notification or a response of the client."""
        if message.method is UNSET:
            session.resolve(message)
        elif message.method == "notifications/initialized" and not session.is_ready:
            session.is_ready = True
            self._server.hub.add(session, session.notify)
        elif message.method == "notifications/cancelled":
            cancelled = cancelled_id(message.params)
            running = None if cancelled is None else session.running.get(cancelled)
            if running is not None:
                running.cancel()

    async def _answer(
        self,
        exchange: Exchange,
        method: str,
        route: Route | None,
        params: Any,
        request_id: RequestId,
        use: SessionUse | None,
    ) -> None:
        """Answer a request in the task of its HTTP request."""
        profiles = self._profiles(exchange)
        session = None if use is None else use.session
        responder = Responder(exchange, use, self._timeouts)
        if session is not None:
            session.running[request_id] = responder
        try:
            request = self._request(exchange, method, params, request_id, session, responder, profiles)
            reply = await self._server.respond(route, request)
            if responder.is_cancelled:
                # The tool went on in spite of it.
                raise asyncio.CancelledError
            await responder.finish(reply)
        except asyncio.CancelledError:
            if not responder.is_cancelled or exchange.task.uncancel() > 0:
                raise
            await responder.abandon()
        finally:
            responder.close()
            if session is not None:
                session.running.pop(request_id, None)

    def _request(
        self,
        exchange: Exchange,
        method: str,
        params: Any,
        request_id: RequestId,
        session: HttpSession | None,
        responder: Responder,
        profiles: ProfileChoice,
    ) -> Request:
        principal = _principal(exchange)
        return Request(
            request_id,
            method,
            params,
            session=session,
            channel=responder,
            principal=principal or self._server.options.principal,
            profiles=profiles,
            is_authenticated=principal is not None,
            headers=exchange.scope["headers"],
            is_remote=True,
        )

    def _profiles(self, exchange: Exchange) -> ProfileChoice:
        """The profiles of an address over the server's: one for all toolsets replaces them, one for a toolset adds."""
        own, query = self._server.options.profiles, exchange.scope["query_string"]
        choices = parse_qs(query.decode("latin-1")).get("profile", []) if query else []
        if not choices:
            return own
        try:
            parsed = parse_profiles(choices)
        except ConfigurationError as error:
            raise Refusal(400, str(error)) from None
        if any("=" not in choice for choice in choices):
            return parsed
        return ProfileChoice(default=own.default, toolsets={**own.toolsets, **parsed.toolsets})

    async def _get(self, exchange: Exchange, session: HttpSession) -> None:
        """Open the stream of notifications, or resume a stream."""
        if not _accepts(exchange.headers.get("accept", ""), _EVENT_TYPE):
            raise Refusal(406, "Not Acceptable: accept text/event-stream.")
        with session.begin_use():
            last = exchange.headers.get("last-event-id")
            found = None if last is None else session.find_stream(last)
            if last is not None and found is None:
                raise Refusal(400, "Unknown Last-Event-ID.")
            if (found is None or found[0].is_standalone) and not session.takes_standalone(found and found[0]):
                raise Refusal(409, "Conflict: this session has an open stream already.")
            stream, after = found or (session.open_stream(exchange, is_standalone=True), 0)
            if stream.is_standalone:
                session.standalone = stream
            await (stream.open() if found is None else stream.resume(exchange, after))
            if not stream.is_standalone:
                await hold(exchange, stream, session.closed)
                return
            sending = asyncio.ensure_future(session.send_waiting(stream))
            try:
                await hold(exchange, stream, session.closed)
            finally:
                sending.cancel()

    def _session_of(self, exchange: Exchange, *, is_opening: bool) -> HttpSession:
        if self._is_stateless:
            return self._alone(exchange)
        if not is_opening:
            return self._session(exchange)
        session = self._sessions.open(_owner(exchange))
        if session is None:
            raise Refusal(503, "Too many sessions are open.", [(b"retry-after", b"10")])
        return session

    def _session(self, exchange: Exchange) -> HttpSession:
        given = exchange.headers.get(SESSION_HEADER)
        if given is None:
            raise Refusal(400, "Bad Request: missing Mcp-Session-Id. Send `initialize` first.")
        session = self._sessions.find(given, _owner(exchange))
        if session is None:
            raise Refusal(404, "Session not found. Send `initialize` for a new one.")
        return session

    def _alone(self, exchange: Exchange) -> HttpSession:
        """What stands for a session where none is kept: its client is unknown and cannot be asked."""
        session = HttpSession(_owner(exchange), None)
        session.version = exchange.headers.get(VERSION_HEADER, ASSUMED_VERSION)
        return session


async def _reply_error(exchange: Exchange, error: RpcError, request_id: RequestId | None) -> None:
    await exchange.reply(HTTP_STATUS.get(error.code, 200), [JSON], encode_error(error, request_id))


def _principal(exchange: Exchange) -> Principal | None:
    return exchange.scope.get(PRINCIPAL)


def _owner(exchange: Exchange) -> str | None:
    principal = _principal(exchange)
    return None if principal is None else principal.subject


# The same few headers come with nearly every request.
@lru_cache(maxsize=64)
def _is_json(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == _JSON_TYPE


@lru_cache(maxsize=64)
def _accepts(accept: str, *kinds: str) -> bool:
    """Whether an `Accept` header takes media types: the most specific range that includes one decides by its weight."""
    weights: dict[str, bool] = {}
    for each in accept.lower().split(","):
        name, *parameters = (part.strip() for part in each.split(";"))
        weights[name] = not any(_REFUSED.fullmatch(parameter) for parameter in parameters)
    ranges = ((kind, f"{kind.partition('/')[0]}/*", "*/*") for kind in kinds)
    return all(next((weights[each] for each in among if each in weights), False) for among in ranges)
