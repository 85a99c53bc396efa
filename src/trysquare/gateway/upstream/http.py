"""Streamable HTTP transport."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import httpx2

from trysquare.core.concurrency import BackgroundTasks
from trysquare.core.json import JsonObject
from trysquare.gateway.models import ServerConfig
from trysquare.gateway.upstream import http_client
from trysquare.gateway.upstream.sse import SseTransport
from trysquare.gateway.upstream.transport import (
    DisconnectReason,
    OutgoingMessage,
    RequestId,
    Transport,
    TransportError,
    TransportListener,
    message_too_long,
)
from trysquare.net.http import BUSY, content_type
from trysquare.net.sse import EventReader, EventTooLong
from trysquare.processes.supervisor import ProcessSupervisor
from trysquare.protocol.envelope import SESSION_HEADER, VERSION_HEADER, request_headers
from trysquare.protocol.messages import (
    HEADER_MISMATCH,
    RpcError,
    decode,
    encode_error,
    encode_request,
    member,
    read_error,
)
from trysquare.protocol.versions import LATEST_STATELESS, is_stateless
from trysquare.store import Secrets

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_POST_HEADERS: Final = {"accept": f"{_JSON}, {_EVENTS}", "content-type": _JSON}
_SSE_ONLY = frozenset({400, 404, 405})
"""Statuses of servers with the older SSE transport in response to a POST."""
_RESUMES = 5
_WAIT_SECONDS = 1.0
_MAX_WAIT = 30.0
_DELETE_SECONDS = 2.0
_MAX_ERROR = 1024 * 1024
_MAX_PAGES = 100


class _HeadersMissing(Exception):
    """The server rejected the request, because it expects arguments in headers that we did not know of."""


def create_transport(config: ServerConfig, supervisor: ProcessSupervisor) -> StreamableHttpTransport:
    """The transport of a server; nothing is opened yet."""
    return StreamableHttpTransport(config)


class StreamableHttpTransport(Transport):
    """Streamable HTTP: a POST for each message, responses as JSON or SSE. Falls back to the older SSE transport."""

    def __init__(self, config: ServerConfig, secrets: Secrets | None = None) -> None:
        self._config = config
        self._secrets = secrets
        self._client = http_client.OriginClient(config, secrets)
        self._listener: TransportListener | None = None
        self._background = BackgroundTasks(self._crash)
        self._posts: dict[RequestId, asyncio.Task[None]] = {}
        self._ready: asyncio.Task[None] | None = None
        """The message that ends the handshake, which no other message may overtake."""
        self._version: str | None = None
        self._session: str | None = None
        self._fallback: SseTransport | None = None
        self._mirrored = http_client.MirroredHeaders()
        self._listings: set[RequestId] = set()

    async def open(self, listener: TransportListener) -> None:
        self._listener = listener
        await self._client.open()

    def send(self, outgoing: OutgoingMessage) -> None:
        if self._listener is None:
            raise TransportError(DisconnectReason(reason="The connection was closed.", was_sent=False))
        if self._fallback is not None:
            self._fallback.send(outgoing)
        elif outgoing.request_id is not None:
            self._posts[outgoing.request_id] = self._background.start(self._post_request(outgoing, outgoing.request_id))
        elif not self._is_omitted(outgoing):
            task = self._background.start(self._post_notification(outgoing))
            self._ready = task if outgoing.method == "notifications/initialized" else self._ready

    def set_version(self, version: str) -> None:
        self._version = version
        if self._fallback is not None:
            self._fallback.set_version(version)
        elif not is_stateless(version) and self._session is not None:
            self._background.start(self._listen())

    def cancel(self, request_id: RequestId) -> None:
        if self._fallback is not None:
            self._fallback.cancel(request_id)
        # A stateless server takes a closed connection as a cancellation.
        if (task := self._posts.pop(request_id, None)) is not None:
            task.cancel()

    async def close(self) -> None:
        self._listener = None
        await self._background.close()
        try:
            if self._fallback is not None:
                await self._fallback.close()
            elif self._session is not None and self._version is not None:
                await self._end_session()
        finally:
            await self._client.close()

    @property
    def _is_stateless(self) -> bool:
        return self._version is not None and is_stateless(self._version)

    def _crash(self, error: BaseException) -> None:
        if self._listener is not None:
            self._listener.on_disconnect(DisconnectReason(reason=f"The connection failed ({type(error).__name__})."))

    def _is_omitted(self, outgoing: OutgoingMessage) -> bool:
        """Stateless servers get nothing but requests, and a handshake cannot be cancelled."""
        is_cancellation = outgoing.method == "notifications/cancelled"
        return self._is_stateless or (self._version is None and is_cancellation)

    async def _post_notification(self, outgoing: OutgoingMessage) -> None:
        """Send a message without a response."""
        await self._until_ready(outgoing)
        try:
            async with self._post(outgoing) as response:
                if response.status_code == 404 and self._session is not None:
                    self._lose_session()
        except http_client.BROKEN as error:
            if outgoing.method == "notifications/initialized" and self._listener is not None:
                self._listener.on_disconnect(self._client.failure(error))

    async def _post_request(self, outgoing: OutgoingMessage, request_id: RequestId) -> None:
        """Send a request and receive messages until its response."""
        await self._until_ready(outgoing)
        if outgoing.method == "tools/list":
            self._listings.add(request_id)
        try:
            disconnect = await self._exchange(outgoing, request_id)
            if outgoing.method == "subscriptions/listen":
                disconnect = await self._listen_again(outgoing, request_id, disconnect)
        finally:
            self._posts.pop(request_id, None)
            self._listings.discard(request_id)
        if disconnect is not None and self._listener is not None:
            # No effect if there is a response.
            self._listener.on_disconnect(disconnect, request_id)

    async def _listen_again(
        self, outgoing: OutgoingMessage, request_id: RequestId, disconnect: DisconnectReason | None
    ) -> DisconnectReason | None:
        """Reconnect a broken stream: it is harmless, and proxies close idle streams."""
        wait = _WAIT_SECONDS
        while disconnect is not None and disconnect.status is None and self._is_awaited(request_id):
            await asyncio.sleep(wait)
            wait = min(wait * 2, _MAX_WAIT)
            disconnect = await self._exchange(outgoing, request_id)
        return disconnect

    async def _exchange(self, outgoing: OutgoingMessage, request_id: RequestId) -> DisconnectReason | None:
        """One POST and its response stream. Returns why there is no response, if there is none."""
        try:
            try:
                return await self._attempt(outgoing, request_id)
            except _HeadersMissing:
                await self._learn_headers(outgoing)
                return await self._attempt(outgoing, request_id)
        except http_client.BROKEN as error:
            return self._client.failure(error)
        except EventTooLong:
            return message_too_long(self._config.max_line)

    async def _attempt(self, outgoing: OutgoingMessage, request_id: RequestId) -> DisconnectReason | None:
        async with self._post(outgoing) as response:
            return await self._receive_response(outgoing, request_id, response)

    async def _learn_headers(self, refused: OutgoingMessage) -> None:
        """Find the arguments that belong in headers."""
        params: JsonObject = {"_meta": member(decode(refused.body).params, "_meta") or {}}
        for page in range(_MAX_PAGES):
            body = encode_request(f"h{page}", "tools/list", params)
            async with self._post(OutgoingMessage(body=body, method="tools/list")) as response:
                cursor = self._mirrored.learn(await self._last_message(response))
            if cursor is None:
                break
            params["cursor"] = cursor
        self._mirrored.is_listed = True

    async def _last_message(self, response: httpx2.Response) -> bytes:
        if content_type(response) != _EVENTS:
            return await http_client.read_message(response, self._config.max_line) or b""
        reader, last = EventReader(self._config.max_line), b""
        async for chunk in response.aiter_bytes():
            for event in reader.feed(chunk):
                last = event.data
        return last

    async def _until_ready(self, outgoing: OutgoingMessage) -> None:
        if self._ready is not None and outgoing.method != "notifications/initialized":
            await asyncio.wait({self._ready})

    def _post(self, outgoing: OutgoingMessage) -> Any:
        headers = {**_POST_HEADERS, **self._version_headers(outgoing)}
        return self._client.stream("POST", self._config.url, headers=headers, content=outgoing.body)

    def _version_headers(self, outgoing: OutgoingMessage) -> Mapping[str, str]:
        if outgoing.method == "initialize":
            return {}
        if outgoing.method is not None and (self._is_stateless or outgoing.method == "server/discover"):
            return {**request_headers(LATEST_STATELESS, outgoing.method, outgoing.name), **self._mirrored.of(outgoing)}
        return self._session_headers()

    def _session_headers(self) -> dict[str, str]:
        version = {} if self._version is None else {VERSION_HEADER: self._version}
        return version if self._session is None else {**version, SESSION_HEADER: self._session}

    async def _receive_response(
        self, outgoing: OutgoingMessage, request_id: RequestId, response: httpx2.Response
    ) -> DisconnectReason | None:
        """Receive the messages of an HTTP response. Returns why the request has no result, if it has none."""
        if response.status_code >= 300:
            return await self._refused(outgoing, request_id, response)
        if outgoing.method == "initialize":
            self._session = response.headers.get(SESSION_HEADER) or None
        kind = content_type(response)
        if kind == _EVENTS:
            return await self._receive_events(request_id, response)
        if kind != _JSON:
            return DisconnectReason(reason=f"Unexpected content type `{kind or 'none'}`.")
        body = await http_client.read_message(response, self._config.max_line)
        if body is None:
            return message_too_long(self._config.max_line)
        self._receive(body, request_id)
        return DisconnectReason(reason="The HTTP response does not contain the result.")

    def _receive(self, message: bytes, about: RequestId | None) -> None:
        if about in self._listings and self._is_stateless:
            self._mirrored.notice(message)
        if self._listener is not None and message:
            self._listener.receive(message, about)

    async def _receive_events(self, request_id: RequestId, response: httpx2.Response) -> DisconnectReason | None:
        """Read a stream up to the response; a broken stream is resumed if the server supports it."""
        reader = EventReader(self._config.max_line)
        broken = await self._read_events(reader, response, request_id)
        for _ in range(_RESUMES):
            if self._is_stateless or reader.last_id is None or not self._is_awaited(request_id):
                break
            await asyncio.sleep(_WAIT_SECONDS if reader.retry_seconds is None else reader.retry_seconds)
            if not self._is_awaited(request_id):
                break
            broken = await self._resume(reader, request_id)
        return broken or DisconnectReason(reason="The stream ended without the result.")

    async def _read_events(
        self, reader: EventReader, response: httpx2.Response, request_id: RequestId | None
    ) -> DisconnectReason | None:
        try:
            async for chunk in response.aiter_bytes():
                for event in reader.feed(chunk):
                    if event.name == "message":
                        self._receive(event.data, request_id)
                if request_id is not None and not self._is_awaited(request_id):
                    return None
        except http_client.BROKEN as error:
            return self._client.failure(error)
        return None

    async def _resume(self, reader: EventReader, request_id: RequestId) -> DisconnectReason | None:
        """Resume a stream after its last event. Nothing is sent again."""
        try:
            async with self._stream_after(reader.last_id) as response:
                if response.status_code >= 300 or content_type(response) != _EVENTS:
                    reader.last_id = None
                    return DisconnectReason(reason="The stream broke and cannot be resumed.")
                fresh = _continued(reader, self._config.max_line)
                broken = await self._read_events(fresh, response, request_id)
                reader.last_id, reader.retry_seconds = fresh.last_id, fresh.retry_seconds
                return broken
        except http_client.BROKEN as error:
            return self._client.failure(error)

    def _stream_after(self, last_id: str | None) -> Any:
        headers = {"accept": _EVENTS, "cache-control": "no-store", **self._session_headers()}
        if last_id is not None:
            headers["last-event-id"] = last_id
        return self._client.stream("GET", self._config.url, headers=headers)

    def _is_awaited(self, request_id: RequestId) -> bool:
        return self._listener is not None and self._listener.is_pending(request_id)

    async def _refused(
        self, outgoing: OutgoingMessage, request_id: RequestId, response: httpx2.Response
    ) -> DisconnectReason | None:
        body = await http_client.read_message(response, _MAX_ERROR) if content_type(response) == _JSON else None
        if self._is_session_lost(response.status_code, body or b""):
            self._lose_session(request_id)
            return None
        error = None if body is None else _error_of(body)
        # For a busy server only its `Retry-After` matters.
        is_busy = response.status_code == 429 or (response.status_code in BUSY and "retry-after" in response.headers)
        if error is not None and not is_busy:
            if error.code == HEADER_MISMATCH and outgoing.name and not self._mirrored.is_listed:
                raise _HeadersMissing
            self._receive(encode_error(error, request_id), request_id)
            return None
        if outgoing.method == "initialize" and response.status_code in _SSE_ONLY:
            return await self._fall_back(outgoing, self._client.refusal(response))
        return self._client.refusal(response)

    def _is_session_lost(self, status: int, body: bytes) -> bool:
        """Servers should respond to an unknown session with 404; many use 400 and a message."""
        has_session = self._session is not None and self._version is not None
        return has_session and (status == 404 or (status == 400 and b"session" in body.lower()))

    async def _fall_back(self, outgoing: OutgoingMessage, refusal: DisconnectReason) -> DisconnectReason | None:
        """Try the older SSE transport, whose servers do not support POST."""
        fallback = SseTransport(self._config, self._secrets)
        if self._listener is None:
            return refusal
        try:
            await fallback.open(self._listener)
            self._fallback = fallback
            fallback.send(outgoing)
        except TransportError:
            self._fallback = None
            await fallback.close()
            return refusal
        return None

    def _lose_session(self, request_id: RequestId | None = None) -> None:
        """End an expired session. This request was not acted on; others may have been."""
        reason = "The session has expired."
        if self._listener is not None:
            if request_id is not None:
                self._listener.on_disconnect(DisconnectReason(reason=reason, was_sent=False, status=404), request_id)
            self._session = None
            self._listener.on_disconnect(DisconnectReason(reason=reason, status=404))

    async def _listen(self) -> None:
        """Receive the server's own messages, as long as the session lasts."""
        if self._ready is not None:
            await asyncio.wait({self._ready})
        reader = EventReader(self._config.max_line)
        wait = _WAIT_SECONDS
        while self._listener is not None:
            was_open = await self._listen_once(reader)
            if was_open is None:
                return
            wait = _WAIT_SECONDS if was_open else min(wait * 2, _MAX_WAIT)
            await asyncio.sleep(wait if reader.retry_seconds is None else reader.retry_seconds)

    async def _listen_once(self, reader: EventReader) -> bool | None:
        """Read one stream to its end. None if the server has none, False if it could not be reached."""
        try:
            async with self._stream_after(reader.last_id) as response:
                if response.status_code == 404:
                    self._lose_session()
                if response.status_code >= 300 or content_type(response) != _EVENTS:
                    return None
                fresh = _continued(reader, self._config.max_line)
                await self._read_events(fresh, response, None)
                reader.last_id, reader.retry_seconds = fresh.last_id, fresh.retry_seconds
        except EventTooLong:
            return True
        except http_client.BROKEN:
            return False
        return True

    async def _end_session(self) -> None:
        """Delete the session at the server, which need not respond."""
        try:
            async with asyncio.timeout(_DELETE_SECONDS):
                async with self._client.stream("DELETE", self._config.url, headers=self._session_headers()):
                    pass
        except (TimeoutError, *http_client.BROKEN):
            pass


def _continued(reader: EventReader, most_bytes: int) -> EventReader:
    fresh = EventReader(most_bytes)
    fresh.last_id, fresh.retry_seconds = reader.last_id, reader.retry_seconds
    return fresh


def _error_of(body: bytes) -> RpcError | None:
    """A protocol error in the body of an HTTP error; its id may be missing, so it is not relayed as it is."""
    error = member(body, "error")
    return read_error(error) if isinstance(error, dict) and "code" in error else None
