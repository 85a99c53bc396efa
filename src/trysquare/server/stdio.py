"""Stdio transport."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from trysquare.core.toolset import Toolset
from trysquare.processes.pipes import LineBuffer, PipeReader, PipeWriter, redirect_stdout
from trysquare.server.codec import FrameError, decode_frame, encode_frame
from trysquare.server.options import ServeOptions
from trysquare.server.server import build_server

MAX_LINE = 64 * 1024 * 1024
_PAUSE_ABOVE = 32 * 1024 * 1024
_ENDLESS = frozenset({"subscriptions/listen"})
"""Requests that are answered only when the connection ends."""


class ReceiveStream:
    """The messages that have come in: the SDK's read stream."""

    def __init__(self) -> None:
        self._messages: deque[SessionMessage] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False

    def put(self, message: JSONRPCMessage) -> None:
        """Add a message."""
        self._messages.append(SessionMessage(message))
        self._wake()

    def end(self) -> None:
        """Say that no more will come."""
        self._ended = True
        self._wake()

    async def receive(self) -> SessionMessage:
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    async def aclose(self) -> None:
        self.end()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        while not self._messages:
            if self._ended:
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._messages.popleft()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self.end()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class StdioTransport:
    """Both directions of one client, and which of its requests are still open."""

    def __init__(self, read_from: int, write_to: int, *, grace: float) -> None:
        self.inbox = ReceiveStream()
        self._lines = LineBuffer(MAX_LINE)
        self._inlet = PipeReader(read_from, self._hear)
        self._outlet = PipeWriter(write_to, self._lost)
        self._open: set[str | int] = set()
        self._grace = grace
        self._paused = False
        self._input_ended = False

    def start(self) -> None:
        """Begin to read."""
        self._inlet.start()

    async def finish(self) -> None:
        """Stop reading and let what is written go out, as long as somebody takes it."""
        self._inlet.stop()
        with anyio.move_on_after(self._grace):
            await self._outlet.drain(below=1)
        self._outlet.close()

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        self._outlet.write(encode_frame(message))
        if isinstance(message, (JSONRPCResponse, JSONRPCError)) and message.id is not None:
            self._close_request(message.id)
        if self._outlet.waiting_bytes:
            await self._outlet.drain()
            self._resume()

    async def aclose(self) -> None:
        return None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        return None

    def _hear(self, chunk: bytes) -> None:
        for line in self._lines.feed(chunk) if chunk else self._lines.finish():
            self._take(None if line is None else bytes(line))
        if not chunk:
            self._end_input()
        elif self._outlet.waiting_bytes > _PAUSE_ABOVE and not self._paused:
            # A client that sends and never reads must not fill our memory.
            self._paused = True
            self._inlet.pause()

    def _resume(self) -> None:
        if self._paused and self._outlet.waiting_bytes <= _PAUSE_ABOVE:
            self._paused = False
            self._inlet.resume()

    def _take(self, line: bytes | None) -> None:
        if line is not None and not line.strip():
            return
        try:
            if line is None:
                raise FrameError(INVALID_REQUEST, f"The line is longer than {MAX_LINE} bytes.")
            message = decode_frame(line)
        except FrameError as error:
            self._outlet.write(encode_frame(error.answer))
            return
        self._note(message)
        self.inbox.put(message)

    def _note(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest) and message.method not in _ENDLESS:
            self._open.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            # A cancelled request gets no answer, so nobody must wait for one.
            cancelled = (message.params or {}).get("requestId")
            if isinstance(cancelled, (str, int)):
                self._close_request(cancelled)

    def _close_request(self, request_id: str | int) -> None:
        self._open.discard(request_id)
        if self._input_ended and not self._open:
            self.inbox.end()

    def _end_input(self) -> None:
        """The client has closed our input: answer what it still waits for, then end."""
        self._input_ended = True
        if not self._open:
            self.inbox.end()
            return
        asyncio.get_running_loop().call_later(self._grace, self.inbox.end)

    def _lost(self) -> None:
        """The client takes no more answers."""
        self._inlet.stop()
        self.inbox.end()


GRACE = 3.0
"""Seconds that open calls have to end after the client closed our input."""


async def serve_stdio(toolset: Toolset, options: ServeOptions | None = None) -> None:
    """Serve one client until it closes our input."""
    with redirect_stdout() as (read_from, write_to):
        await serve_descriptors(toolset, options, read_from=read_from, write_to=write_to)


async def serve_descriptors(
    toolset: Toolset, options: ServeOptions | None, *, read_from: int, write_to: int, grace: float = GRACE
) -> None:
    """Serve one client over two descriptors: pipes, sockets, a terminal or files."""
    server = build_server(toolset, options)
    server.calls.carries_raw = True
    streams = StdioTransport(read_from, write_to, grace=grace)
    streams.start()
    try:
        await server.run(streams.inbox, streams, server.create_initialization_options())
    finally:
        await streams.finish()
