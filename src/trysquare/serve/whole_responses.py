"""Whole responses: head and body go out in one write, so that a client is not woken twice for one answer."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from starlette.types import Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

_START = b"HTTP/1."
_LENGTH = b"\r\ncontent-length: "
_LARGE = 64 * 1024
"""Bytes of a body above which joining would cost more than a second write."""


class WholeResponses(HttpToolsProtocol):
    """uvicorn's protocol over a transport that joins a head with the body behind it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self._joining = JoiningTransport(transport)
        # It has every method that uvicorn uses; those that it does not join anything in are the transport's own.
        super().connection_made(cast(asyncio.Transport, self._joining))

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        # uvicorn cannot be told to make cycles of another class.
        if type(cycle) is not WholeCycle:
            cycle.__class__ = WholeCycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        self.flush_head()
        super().on_response_complete()

    def flush_head(self) -> None:
        """Write a head that nothing follows: the answer to HEAD has a length and no body."""
        self._joining.flush()


class WholeCycle(RequestResponseCycle):
    """uvicorn's cycle of a request and its response, which also takes a response that is there as a whole."""

    def whole_body(self) -> bytes | None:
        """The body of the request, if all of it is there. It can be received as ever."""
        is_usual = self.response_started or self.disconnected or self.waiting_for_100_continue
        return None if is_usual or self.more_body else bytes(self.body)

    def send_whole(self, status: int, head: bytes, body: bytes) -> bool:
        """Send a response and end; False where it has to take the usual way.

        `head` is lines of headers, lower-case and sound, without the length of the body.
        """
        is_usual = self.response_started or self.disconnected or self.flow.write_paused or not self.keep_alive
        if is_usual or self.waiting_for_100_continue or self.access_log or len(body) > _LARGE:
            return False
        self.response_started = self.response_complete = True
        parts = (STATUS_LINE[status], _lines(self.default_headers), head, len(body), body)
        self.transport.write(b"%b%b%bcontent-length: %d\r\n\r\n%b" % parts)
        self.message_event.set()
        self.on_response()
        return True


# uvicorn makes a new list of its headers once a second, with the date in it.
_known_lines: tuple[object, bytes] = (None, b"")


def _lines(headers: list[tuple[bytes, bytes]]) -> bytes:
    global _known_lines
    if _known_lines[0] is not headers:
        _known_lines = (headers, b"".join(b"%b: %b\r\n" % pair for pair in headers))
    return _known_lines[1]


def cycle_of(send: Send) -> WholeCycle | None:
    """The cycle that a response goes to, if nothing stands between it and the application."""
    cycle = getattr(send, "__self__", None)
    return cycle if isinstance(cycle, WholeCycle) and send == cycle.send else None


class JoiningTransport:
    """A transport that keeps the head of a response whose length is known until the body comes, which it does at once.

    The head of a stream goes out by itself: its first event may be long in coming.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write, or keep a head."""
        if self._head:
            data = self._joined(data)
        elif data.startswith(_START) and data.endswith(b"\r\n\r\n") and _LENGTH in data:
            self._head = data
            return
        self._transport.write(data)

    def flush(self) -> None:
        """Write what is kept."""
        head, self._head = self._head, b""
        if head:
            self._transport.write(head)

    def close(self) -> None:
        """Write what is kept, and close."""
        self.flush()
        self._transport.close()

    def _joined(self, body: bytes) -> bytes:
        if len(body) > _LARGE:
            self.flush()
            return body
        head, self._head = self._head, b""
        return head + body
