"""The channel to a server over streamable HTTP, in both eras: a POST a message, answers as JSON or as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, cast

import httpx2
import msgspec

from trysquare.core.types import JsonObject
from trysquare.gateway.configuration.secrets import Secrets
from trysquare.gateway.server import ServerConfig
from trysquare.gateway.upstream.channel import Listener, Loss, Outgoing, RequestId, Unreachable
from trysquare.gateway.upstream.errands import Errands
from trysquare.gateway.upstream.events import EventReader, TooLong
from trysquare.gateway.upstream.handshake import MODERN
from trysquare.gateway.upstream.http_headers import MirroredHeaders, modern_headers
from trysquare.gateway.upstream.oauth import LoginLost
from trysquare.gateway.upstream.sse import SseChannel
from trysquare.gateway.upstream.web import BUSY, Web, body_of, kind_of

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_POST_HEADERS: Final = {"accept": f"{_JSON}, {_EVENTS}", "content-type": _JSON}
_OLD_SERVER = frozenset({400, 404, 405})
"""What a server of the transport before this one may answer to a POST."""
_RESUMES = 5
_WAIT_SECONDS = 1.0
_LONGEST_WAIT = 30.0
_GOODBYE_SECONDS = 2.0
_LONGEST_ERROR = 1024 * 1024
_HEADER_MISMATCH = -32020
_MOST_PAGES = 100
_BROKEN = (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, LoginLost)


class _HeadersMissing(Exception):
    """The server wants arguments in headers that we did not know of. It has refused the request."""


class HttpChannel:
    """A server behind an address. Where it turns out to speak the transport before this one, so does the channel."""

    def __init__(self, config: ServerConfig, secrets: Secrets | None = None) -> None:
        self._config = config
        self._secrets = secrets
        self._web = Web(config, secrets)
        self._listener: Listener | None = None
        self._errands = Errands(self._crash)
        self._posts: dict[RequestId, asyncio.Task[None]] = {}
        self._ready: asyncio.Task[None] | None = None
        """The message that ends the handshake. Nothing may overtake it."""
        self._version: str | None = None
        self._session: str | None = None
        self._older: SseChannel | None = None
        self._mirrored = MirroredHeaders()
        self._listings: set[RequestId] = set()

    async def open(self, listener: Listener) -> None:
        self._listener = listener
        await self._web.open()

    def send(self, outgoing: Outgoing) -> None:
        if self._listener is None:
            raise Unreachable(Loss(reason="The connection to the server has ended.", was_sent=False))
        if self._older is not None:
            self._older.send(outgoing)
        elif outgoing.request_id is not None:
            self._posts[outgoing.request_id] = self._errands.begin(self._ask(outgoing, outgoing.request_id))
        elif not self._goes_unsaid(outgoing):
            task = self._errands.begin(self._tell(outgoing))
            self._ready = task if outgoing.method == "notifications/initialized" else self._ready

    def settle(self, version: str) -> None:
        self._version = version
        if self._older is not None:
            self._older.settle(version)
        elif version != MODERN and self._session is not None:
            self._errands.begin(self._listen())

    def abandon(self, request_id: RequestId) -> None:
        if self._older is not None:
            self._older.abandon(request_id)
        # In the modern era, to hang up is to take the request back.
        if (task := self._posts.pop(request_id, None)) is not None:
            task.cancel()

    def last_words(self) -> str:
        return ""

    async def close(self) -> None:
        self._listener = None
        await self._errands.end()
        try:
            if self._older is not None:
                await self._older.close()
            elif self._session is not None and self._version is not None:
                await self._say_goodbye()
        finally:
            await self._web.close()

    def _crash(self, reason: str) -> None:
        if self._listener is not None:
            self._listener.lose(Loss(reason=reason))

    def _goes_unsaid(self, outgoing: Outgoing) -> bool:
        """The modern era has no messages to a server but requests, and a handshake cannot be taken back."""
        is_cancellation = outgoing.method == "notifications/cancelled"
        return self._version == MODERN or (self._version is None and is_cancellation)

    async def _tell(self, outgoing: Outgoing) -> None:
        """Send what gets no answer."""
        await self._until_ready(outgoing)
        try:
            async with self._posted(outgoing) as response:
                if response.status_code == 404 and self._session is not None:
                    self._lose_session()
        except _BROKEN as error:
            if outgoing.method == "notifications/initialized" and self._listener is not None:
                self._listener.lose(self._web.failure(error))

    async def _ask(self, outgoing: Outgoing, request_id: RequestId) -> None:
        """Send a request, and pass on what comes until its answer is there or cannot come any more."""
        await self._until_ready(outgoing)
        if outgoing.method == "tools/list":
            self._listings.add(request_id)
        try:
            loss = await self._exchanged(outgoing, request_id)
            if outgoing.method == "subscriptions/listen":
                loss = await self._listened_again(outgoing, request_id, loss)
        finally:
            self._posts.pop(request_id, None)
            self._listings.discard(request_id)
        if loss is not None and self._listener is not None:
            # Does nothing where the answer is there.
            self._listener.lose(loss, request_id)

    async def _listened_again(self, outgoing: Outgoing, request_id: RequestId, loss: Loss | None) -> Loss | None:
        """Listen anew when a stream breaks off: that does no harm, and proxies like to end those that say little."""
        wait = _WAIT_SECONDS
        while self._is_broken_off(loss, request_id):
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT)
            loss = await self._exchanged(outgoing, request_id)
        return loss

    def _is_broken_off(self, loss: Loss | None, request_id: RequestId) -> bool:
        return loss is not None and loss.status is None and self._is_awaited(request_id)

    async def _exchanged(self, outgoing: Outgoing, request_id: RequestId) -> Loss | None:
        """One POST and what it brings; why there is no answer, if there is none."""
        try:
            try:
                return await self._attempted(outgoing, request_id)
            except _HeadersMissing:
                await self._learn_headers(outgoing)
                return await self._attempted(outgoing, request_id)
        except _BROKEN as error:
            return self._web.failure(error)
        except TooLong:
            return self._too_long()

    async def _attempted(self, outgoing: Outgoing, request_id: RequestId) -> Loss | None:
        async with self._posted(outgoing) as response:
            return await self._heard(outgoing, request_id, response)

    async def _learn_headers(self, refused: Outgoing) -> None:
        """Find out which arguments belong in headers."""
        params: JsonObject = {"_meta": msgspec.json.decode(refused.body)["params"].get("_meta", {})}
        for page in range(_MOST_PAGES):
            body = msgspec.json.encode({"jsonrpc": "2.0", "id": f"h{page}", "method": "tools/list", "params": params})
            async with self._posted(Outgoing(body=body, method="tools/list")) as response:
                cursor = self._mirrored.learn(await self._last_message(response))
            if cursor is None:
                break
            params["cursor"] = cursor
        self._mirrored.is_listed = True

    async def _last_message(self, response: httpx2.Response) -> bytes:
        if kind_of(response) != _EVENTS:
            return await body_of(response, self._config.max_line) or b""
        reader, last = EventReader(self._config.max_line), b""
        async for chunk in response.aiter_bytes():
            for event in reader.feed(chunk):
                last = event.data
        return last

    async def _until_ready(self, outgoing: Outgoing) -> None:
        if self._ready is not None and outgoing.method != "notifications/initialized":
            await asyncio.wait({self._ready})

    def _posted(self, outgoing: Outgoing) -> Any:
        headers = {**_POST_HEADERS, **self._era_headers(outgoing)}
        return self._web.stream("POST", self._config.url, headers=headers, content=outgoing.body)

    def _era_headers(self, outgoing: Outgoing) -> Mapping[str, str]:
        if outgoing.method == "initialize":
            return {}
        if outgoing.method is not None and (self._version == MODERN or outgoing.method == "server/discover"):
            return {**modern_headers(outgoing.method, outgoing.name), **self._mirrored.of(outgoing)}
        return self._session_headers()

    def _session_headers(self) -> dict[str, str]:
        version = {} if self._version is None else {"mcp-protocol-version": self._version}
        return version if self._session is None else {**version, "mcp-session-id": self._session}

    async def _heard(self, outgoing: Outgoing, request_id: RequestId, response: httpx2.Response) -> Loss | None:
        """Pass on what a response brings. Returns why there is no answer, if there should be none by now."""
        if response.status_code >= 300:
            return await self._refused(outgoing, request_id, response)
        if outgoing.method == "initialize":
            self._session = response.headers.get("mcp-session-id") or None
        kind = kind_of(response)
        if kind == _EVENTS:
            return await self._heard_events(request_id, response)
        if kind != _JSON:
            return Loss(reason=f"The server answered with `{kind or 'no content'}`, which is no message.")
        body = await body_of(response, self._config.max_line)
        if body is None:
            return self._too_long()
        self._hear(body, request_id)
        return Loss(reason="The server's response does not hold the answer.")

    def _hear(self, message: bytes, about: RequestId | None) -> None:
        if about in self._listings and self._version == MODERN:
            self._mirrored.notice(message)
        if self._listener is not None and message:
            self._listener.hear(message, about)

    async def _heard_events(self, request_id: RequestId, response: httpx2.Response) -> Loss | None:
        """Read a stream to the answer, and go on where it broke off, as long as the server can."""
        reader = EventReader(self._config.max_line)
        broken = await self._read_events(reader, response, request_id)
        for _ in range(_RESUMES):
            if self._version == MODERN or reader.last_id is None or not self._is_awaited(request_id):
                break
            await asyncio.sleep(_WAIT_SECONDS if reader.retry_seconds is None else reader.retry_seconds)
            if not self._is_awaited(request_id):
                break
            broken = await self._resume(reader, request_id)
        return broken or Loss(reason="The server ended its response without the answer.")

    async def _read_events(
        self, reader: EventReader, response: httpx2.Response, request_id: RequestId | None
    ) -> Loss | None:
        try:
            async for chunk in response.aiter_bytes():
                for event in reader.feed(chunk):
                    if event.name == "message":
                        self._hear(event.data, request_id)
                if request_id is not None and not self._is_awaited(request_id):
                    return None
        except _BROKEN as error:
            return self._web.failure(error)
        return None

    async def _resume(self, reader: EventReader, request_id: RequestId) -> Loss | None:
        """Go on with a stream after the last event that came. Nothing is sent again."""
        try:
            async with self._stream_after(reader.last_id) as response:
                if response.status_code >= 300 or kind_of(response) != _EVENTS:
                    reader.last_id = None
                    return Loss(reason="The server broke off its response and does not go on with it.")
                fresh = _continued(reader, self._config.max_line)
                broken = await self._read_events(fresh, response, request_id)
                reader.last_id, reader.retry_seconds = fresh.last_id, fresh.retry_seconds
                return broken
        except _BROKEN as error:
            return self._web.failure(error)

    def _stream_after(self, last_id: str | None) -> Any:
        headers = {"accept": _EVENTS, "cache-control": "no-store", **self._session_headers()}
        if last_id is not None:
            headers["last-event-id"] = last_id
        return self._web.stream("GET", self._config.url, headers=headers)

    def _is_awaited(self, request_id: RequestId) -> bool:
        return self._listener is not None and self._listener.awaits(request_id)

    async def _refused(self, outgoing: Outgoing, request_id: RequestId, response: httpx2.Response) -> Loss | None:
        body = await body_of(response, _LONGEST_ERROR) if kind_of(response) == _JSON else None
        if self._is_session_lost(response.status_code, body or b""):
            self._lose_session(request_id)
            return None
        error = None if body is None else _error_of(body)
        # Who is told when to come again need not read why.
        is_busy = response.status_code == 429 or (response.status_code in BUSY and "retry-after" in response.headers)
        if error is not None and not is_busy:
            if error.get("code") == _HEADER_MISMATCH and outgoing.name and not self._mirrored.is_listed:
                raise _HeadersMissing
            self._hear(msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": error}), request_id)
            return None
        if outgoing.method == "initialize" and response.status_code in _OLD_SERVER:
            return await self._fall_back(outgoing, self._web.refusal(response))
        return self._web.refusal(response)

    def _is_session_lost(self, status: int, body: bytes) -> bool:
        """Servers should say 404 to a session that they do not know; many say 400, and why in words."""
        has_session = self._session is not None and self._version is not None
        return has_session and (status == 404 or (status == 400 and b"session" in body.lower()))

    async def _fall_back(self, outgoing: Outgoing, refusal: Loss) -> Loss | None:
        """Try the transport before this one, as its servers know no POST to their address."""
        older = SseChannel(self._config, self._secrets)
        if self._listener is None:
            return refusal
        try:
            await older.open(self._listener)
            self._older = older
            older.send(outgoing)
        except Unreachable:
            self._older = None
            await older.close()
            return refusal
        return None

    def _lose_session(self, request_id: RequestId | None = None) -> None:
        """The server no longer knows us. The request at hand was not acted on; others may have been."""
        reason = "The server has ended the session."
        if self._listener is not None:
            if request_id is not None:
                self._listener.lose(Loss(reason=reason, was_sent=False, status=404), request_id)
            self._session = None
            self._listener.lose(Loss(reason=reason, status=404))

    def _too_long(self) -> Loss:
        return Loss(reason=f"The server sent a message of more than {self._config.max_line} bytes.")

    async def _listen(self) -> None:
        """Hear what the server says without having been asked, for as long as the session lasts."""
        if self._ready is not None:
            await asyncio.wait({self._ready})
        reader = EventReader(self._config.max_line)
        wait = _WAIT_SECONDS
        while self._listener is not None:
            heard = await self._listen_once(reader)
            if heard is None:
                return
            wait = _WAIT_SECONDS if heard else min(wait * 2, _LONGEST_WAIT)
            await asyncio.sleep(wait if reader.retry_seconds is None else reader.retry_seconds)

    async def _listen_once(self, reader: EventReader) -> bool | None:
        """One stream to its end. None where the server offers none, False where it could not be reached."""
        try:
            async with self._stream_after(reader.last_id) as response:
                if response.status_code == 404:
                    self._lose_session()
                if response.status_code >= 300 or kind_of(response) != _EVENTS:
                    return None
                fresh = _continued(reader, self._config.max_line)
                await self._read_events(fresh, response, None)
                reader.last_id, reader.retry_seconds = fresh.last_id, fresh.retry_seconds
        except TooLong:
            return True
        except _BROKEN:
            return False
        return True

    async def _say_goodbye(self) -> None:
        """Let the server forget the session. It need not answer, and often does not."""
        try:
            async with asyncio.timeout(_GOODBYE_SECONDS):
                async with self._web.stream("DELETE", self._config.url, headers=self._session_headers()):
                    pass
        except (TimeoutError, *_BROKEN):
            pass


def _continued(reader: EventReader, most_bytes: int) -> EventReader:
    """A reader for the stream that goes on after another."""
    fresh = EventReader(most_bytes)
    fresh.last_id, fresh.retry_seconds = reader.last_id, reader.retry_seconds
    return fresh


def _error_of(body: bytes) -> JsonObject | None:
    """An error of the protocol that came with a status; None for any other body.

    Servers that refuse a request before they read it do not know its id, so that it cannot be passed on as it is.
    """
    try:
        found: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    error = cast(JsonObject, found).get("error") if isinstance(found, dict) else None
    return cast(JsonObject, error) if isinstance(error, dict) and "code" in error else None
