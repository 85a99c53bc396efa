"""Limits of connections, before anything of a request is known: how many, and how long and large its head may be."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from trysquare.server.http.exchange import CONNECTION_LOST, AsgiApp, AsgiMessage, Receive, Scope, Send, headers_of
from trysquare.server.http.transport import JoiningTransport

logger = logging.getLogger("trysquare.server")

_TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_MANY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 10\r\ncontent-length: 0\r\n\r\n"
)
_HEAD_END: Final = b"\r\n\r\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class ConnectionLimits:
    """What a client may take before it has proved anything."""

    connections: int = 1000
    head_bytes: int = 64 * 1024
    head_seconds: float = 10.0
    """Seconds to send the head of a request, from its first byte, or of the first one from the connection on."""


ProtocolFactory: TypeAlias = Callable[..., asyncio.Protocol]
Peer: TypeAlias = tuple[str, int]


class ConnectionGuard:
    """Wraps the protocol of an HTTP server, and learns from an ASGI middleware when a request's head is complete.

    `protocol` goes to the server as the class of its connections, and `middleware` around its application.
    """

    def __init__(self, limits: ConnectionLimits, protocol: ProtocolFactory, *, max_body: int) -> None:
        self.limits = limits
        self.request_bytes = 2 * (max_body + limits.head_bytes)
        """Bytes that may come while a request is open: its body in chunks, and the head of the next one."""
        self._protocol = protocol
        self._connections: dict[Peer, _GuardedConnection] = {}
        self._open = 0

    def protocol(self, **options: Any) -> asyncio.Protocol:
        """The protocol of one connection, for the server to create."""
        return _GuardedConnection(self, self._protocol(**options))

    def middleware(self, app: AsgiApp) -> AsgiApp:
        """The application, with each of its requests reported to the guard of its connection."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            connection = self._connections.get(scope.get("client") or ("", 0)) if scope["type"] == "http" else None
            if connection is None:
                await app(scope, receive, send)
                return
            scope[CONNECTION_LOST] = connection.lost
            connection.begin_request(int(headers_of(scope)[0].get("content-length", 0)))
            try:
                await app(scope, receive, connection.joined(send, scope["method"]))
            finally:
                connection.end_request()

        return guarded

    def admit(self, connection: _GuardedConnection, peer: Peer | None) -> bool:
        """Whether another connection may be opened."""
        self._open += 1
        if peer is not None:
            self._connections[peer] = connection
        if self._open <= self.limits.connections:
            return True
        logger.warning("connection refused: open=%d limit=%d", self._open - 1, self.limits.connections)
        return False

    def forget(self, connection: _GuardedConnection, peer: Peer | None) -> None:
        self._open -= 1
        # The port may have a new connection already, of which the end of this one must not lose track.
        if peer is not None and self._connections.get(peer) is connection:
            del self._connections[peer]


class _GuardedConnection(asyncio.Protocol):
    """One connection: passes everything on, and closes it where the head of a request is too large or too slow."""

    def __init__(self, guard: ConnectionGuard, inner: asyncio.Protocol) -> None:
        self._guard = guard
        self._inner = inner
        self._transport: JoiningTransport | None = None
        self._peer: Peer | None = None
        self._requests = 0
        self._body: int = 0
        """Bytes of the body of the last request that are still to come; negative once there is more than that."""
        self._received = 0
        """Bytes that came while a request was open."""
        self._head: int = 0
        """Bytes of the head that is being received; 0 before its first one."""
        self._tail = b""
        self._is_complete: bool = False
        self._timer: asyncio.TimerHandle | None = None
        self.lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = JoiningTransport(cast(asyncio.Transport, transport))
        name: tuple[str, int] | str | None = transport.get_extra_info("peername")
        self._peer = (name[0], name[1]) if isinstance(name, tuple) else None
        if not self._guard.admit(self, self._peer):
            self._refuse(_TOO_MANY)
        self._inner.connection_made(self._transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        if self._requests or self._is_complete:
            self._received += len(data)
            self._body -= len(data)
            if self._received > self._guard.request_bytes:
                self._refuse()
                return
        else:
            if not self._take_head(data):
                self._refuse(_TOO_LARGE)
                return
            if not self._is_complete:
                # Any byte stops the server's own timer for idle connections, so that every one needs a timer here.
                self._start_timer()
        self._inner.data_received(data)

    def _take_head(self, data: bytes) -> bool:
        """Look for the end of a head; False if it is longer than it may be."""
        # What is left of a body whose request was refused before it was read, and empty lines, do not count.
        rest = data[max(self._body, 0) :]
        self._body -= len(data)
        begun = rest if self._head else rest.lstrip(b"\r\n")
        if not begun:
            return True
        joined = self._tail + begun
        self._head += len(begun)
        self._tail = joined[-3:]
        end = joined.find(_HEAD_END)
        self._is_complete = end >= 0
        if self._is_complete:
            self._body = end + len(_HEAD_END) - len(joined)
            self._head += self._body
        return self._head <= self._guard.limits.head_bytes

    def begin_request(self, body_length: int) -> None:
        """The head of a request is complete, and names the length of its body: 0 for one in chunks."""
        self._requests += 1
        self._body += body_length
        self._stop_timer()

    def end_request(self) -> None:
        """A request is answered: what comes after its body is the head of another one."""
        self._requests -= 1
        if not self._requests:
            self._received, self._head, self._tail, self._is_complete = 0, 0, b"", False

    def joined(self, send: Send, method: str) -> Send:
        """What sends a response's head with its body: the rule of ASGI is that it waits for the first part of that."""
        transport = self._transport
        if transport is None or method == "HEAD":
            return send

        def send_joined(message: AsgiMessage) -> Awaitable[None]:
            transport.holds = message["type"] == "http.response.start"
            return send(message)

        return send_joined

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._guard.forget(self, self._peer)
        self._inner.connection_lost(exc)
        self.lost.set()

    def _start_timer(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._guard.limits.head_seconds, self._refuse, _TOO_SLOW)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, response: bytes = b"") -> None:
        """Close the connection. A response is for a client that has no open request, or it would get two."""
        self._stop_timer()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(response)
            self._transport.close()
