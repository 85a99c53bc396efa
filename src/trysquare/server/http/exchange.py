"""One HTTP request under ASGI, and the way to answer it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, MutableMapping
from typing import Any, Final, TypeAlias

from trysquare.core.concurrency import TimeoutScheduler
from trysquare.protocol.messages import encode

Scope: TypeAlias = MutableMapping[str, Any]
AsgiMessage: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[AsgiMessage]]
Send: TypeAlias = Callable[[AsgiMessage], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = list[tuple[bytes, bytes]]

JSON: Final = (b"content-type", b"application/json")
_EVENTS: Final[Headers] = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
_BLANKS: Final = b" \t"
_SINGLE: Final = frozenset(
    {"host", "origin", "authorization", "content-type", "content-length", "mcp-session-id", "last-event-id"}
)
"""Headers that must not come twice: two readers might take different ones."""
_DECODED: Final = "trysquare.headers"
"""Where the scope of a request has its headers once they were decoded."""
CONNECTION_LOST: Final = "trysquare.connection_lost"
"""Where the scope of a request may have an event that is set when its connection is lost."""
_BODY_SECONDS: Final = 30.0
"""Seconds in which more of a body must come."""
_BODY_RATE: Final = 4096
"""Bytes a second that a body must have on average, beyond its first seconds."""


class ClientGone(Exception):
    """The client hung up, or sent nothing for too long, before its request was complete."""


class BodyTooLarge(Exception):
    """The body is larger than the server takes."""


class Exchange:
    """A request with its headers by name, and its response: whole, or as a stream of events."""

    __slots__ = ("_receive", "_send", "headers", "method", "repeated", "scope", "task")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.headers, self.repeated = headers_of(scope)
        task = asyncio.current_task()
        assert task is not None, "an ASGI application runs in a task"
        self.task = task
        """The task that answers the request."""
        self._receive = receive
        self._send = send

    async def body(self, limit: int, timeouts: TimeoutScheduler) -> bytes:
        """The whole body. Raises `BodyTooLarge`, at once where its head says so, or `ClientGone`."""
        if self._declared_length() > limit:
            raise BodyTooLarge
        parts: list[bytes] = []
        size, started, seconds = 0, time.monotonic(), _BODY_SECONDS
        while True:
            try:
                with timeouts.limit(seconds, self.task):
                    event = await self._receive()
            except TimeoutError:
                raise ClientGone from None
            if event["type"] != "http.request":
                raise ClientGone
            part: bytes = event.get("body", b"")
            size += len(part)
            if size > limit:
                raise BodyTooLarge
            parts.append(part)
            if not event.get("more_body", False):
                return part if len(parts) == 1 else b"".join(parts)
            seconds = _BODY_SECONDS + min(0.0, started + size / _BODY_RATE - time.monotonic())

    def _declared_length(self) -> int:
        try:
            return int(self.headers.get("content-length", 0))
        except ValueError:
            # Not every server checks it, and what comes is counted anyway.
            return 0

    def reply(self, status: int, headers: Headers, body: bytes = b"") -> Coroutine[Any, Any, None]:
        """Answer with a whole response."""
        return self._deliver(*_response(status, headers, body))

    def begin_events(self, headers: Headers) -> Coroutine[Any, Any, None]:
        """Start to answer with a stream of events."""
        start = {"type": "http.response.start", "status": 200, "headers": [*_EVENTS, *headers]}
        # A server keeps the head until there is a body, and the first event may be long in coming.
        return self._deliver(start, {"type": "http.response.body", "body": b"", "more_body": True})

    def write(self, chunk: bytes, *, is_last: bool = False) -> Coroutine[Any, Any, None]:
        """Send more of the stream; waits while the client does not read."""
        return self._deliver({"type": "http.response.body", "body": chunk, "more_body": not is_last})

    async def _deliver(self, *messages: AsgiMessage) -> None:
        try:
            for message in messages:
                await self._send(message)
        except OSError:
            # Some servers raise it once the client has gone, others take what is sent and drop it.
            return

    async def disconnected(self) -> None:
        """Wait until the client hangs up. Only after the body was read."""
        lost: asyncio.Event | None = self.scope.get(CONNECTION_LOST)
        if lost is None:
            await self._closed()
            return
        # uvicorn reports a lost connection only to the last request on it, and a client may have pipelined another.
        endings = {asyncio.ensure_future(each) for each in (self._closed(), lost.wait())}
        try:
            await asyncio.wait(endings, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for ending in endings:
                ending.cancel()

    async def _closed(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


def headers_of(scope: Scope) -> tuple[dict[str, str], frozenset[str]]:
    """Headers by lower-case name, and the names that came more than once. Of a list, all values count."""
    known = scope.get(_DECODED)
    if known is None:
        known = scope[_DECODED] = _decoded(scope["headers"])
    return known


def _decoded(raw: Headers) -> tuple[dict[str, str], frozenset[str]]:
    # Blanks around a value are no part of it, and parsers of requests leave those behind it.
    headers = {name.decode("latin-1"): value.strip(_BLANKS).decode("latin-1") for name, value in raw}
    if len(headers) == len(raw):
        return headers, frozenset()
    seen: set[bytes] = set()
    repeated = {name.decode("latin-1") for name, _ in raw if name in seen or seen.add(name)}
    for name in repeated - _SINGLE:
        given = name.encode("latin-1")
        headers[name] = b", ".join(value.strip(_BLANKS) for each, value in raw if each == given).decode("latin-1")
    return headers, frozenset(repeated)


def path_of(scope: Scope) -> str:
    """The path inside of the application, which may be mounted below another."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", "")) or "/"


def repeated_single(repeated: Iterable[str]) -> str | None:
    """A header that came twice and must not."""
    return next((name for name in sorted(repeated) if name in _SINGLE), None)


def _response(status: int, headers: Headers, body: bytes) -> tuple[AsgiMessage, AsgiMessage]:
    whole = [*headers, (b"content-length", b"%d" % len(body))]
    start = {"type": "http.response.start", "status": status, "headers": whole}
    return start, {"type": "http.response.body", "body": body}


async def send_response(send: Send, status: int, headers: Headers, body: bytes = b"") -> None:
    """Send a whole response."""
    for message in _response(status, headers, body):
        await send(message)


async def send_json(send: Send, status: int, body: Any, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    """Send a JSON value as a whole response."""
    await send_response(send, status, [JSON, *headers], encode(body))
