"""Whole responses: head and body go out in one write, so that a client is not woken twice for one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
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
        cycle.__class__ = WholeCycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        # The answer to HEAD has a length and no body.
        self._joining.flush()
        super().on_response_complete()


class WholeCycle(RequestResponseCycle):
    """uvicorn's cycle of a request and its response, which also takes a response that is there as a whole."""

    def send_whole(self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> bool:
        """Send a response and end; False where it has to take the usual way.

        The headers are lower-case and sound, and the length of the body is among them.
        """
        is_usual = self.response_started or self.disconnected or self.flow.write_paused or not self.keep_alive
        if is_usual or self.waiting_for_100_continue or self.access_log or len(body) > _LARGE:
            return False
        lines = [b"%b: %b\r\n" % pair for pair in (*self.default_headers, *headers)]
        self.response_started = self.response_complete = True
        self.transport.write(b"".join((STATUS_LINE[status], *lines, b"\r\n", body)))
        self.message_event.set()
        self.on_response()
        return True


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
