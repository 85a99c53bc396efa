"""Stdio transport: one client over two descriptors, one message per line."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Generator

from trysquare.core.concurrency import TurnBuffer
from trysquare.core.toolset import Toolset
from trysquare.processes.pipes import LineBuffer, PipeReader, PipeWriter, redirect_stdout
from trysquare.protocol.messages import INVALID_REQUEST, RpcError, encode_error
from trysquare.server.connection import Connection
from trysquare.server.options import ServeOptions
from trysquare.server.server import McpServer, build_server

MAX_LINE = 64 * 1024 * 1024
GRACE = 3.0
"""Seconds that open calls have to end after the client closed our input."""
_PAUSE_ABOVE = 32 * 1024 * 1024
_READ_SECONDS = 1.0
"""How long a result waits at most for its client to read the progress before it."""
_LOOK_SECONDS = 0.002


class StdioTransport:
    """Lines from one descriptor to a connection, and its messages to the other."""

    def __init__(self, server: McpServer, read_from: int, write_to: int, *, grace: float) -> None:
        self._server = server
        self._lines = LineBuffer(MAX_LINE)
        self._reader = PipeReader(read_from, self._on_chunk)
        self._writer = PipeWriter(write_to, self._on_lost)
        self._replies = TurnBuffer(lambda messages: self._writer.write(b"".join(messages)))
        self._reading = _ReadWatch(write_to, lambda: bool(self._replies.size or self._writer.waiting_bytes))
        self._connection = Connection(server, self._write, self._drain, self._reading.wait)
        self._grace = grace
        self._resuming: asyncio.Task[None] | None = None
        """Set while nothing is read, because the client does not read either."""
        self._end = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Serve until the client closes our input and its open requests have ended, or `stop` is called."""
        self._reader.start()
        try:
            await self._end
        finally:
            self._reader.stop()
            if self._resuming is not None:
                self._resuming.cancel()
            self._server.hub.close()
            await self._connection.close("the client closed the connection", grace=self._grace)
            self._replies.flush()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._grace):
                    await self._writer.drain(below=1)
            self._writer.close()

    def stop(self) -> None:
        """End now: open requests are cancelled."""
        if not self._end.done():
            self._end.set_result(None)

    def _on_chunk(self, chunk: bytes) -> None:
        for line in self._lines.feed(chunk) if chunk else self._lines.finish():
            if line is None:
                error = RpcError(INVALID_REQUEST, f"The line is longer than {MAX_LINE} bytes.")
                self._write(encode_error(error, None))
            elif line.strip():
                self._connection.receive(line)
        if not chunk:
            self._on_end_of_input()
        elif self._writer.waiting_bytes > _PAUSE_ABOVE and self._resuming is None:
            # A client that sends and never reads must not fill our memory.
            self._reader.pause()
            self._resuming = asyncio.get_running_loop().create_task(self._resume())

    async def _resume(self) -> None:
        await self._writer.drain(_PAUSE_ABOVE)
        self._resuming = None
        self._reader.resume()

    def _on_end_of_input(self) -> None:
        """The client has closed our input: answer what it still waits for, then end."""
        if self._connection.is_idle:
            self.stop()
        else:
            self._connection.on_idle = self.stop
            asyncio.get_running_loop().call_later(self._grace, self.stop)

    def _on_lost(self) -> None:
        """The client reads no more."""
        self._reader.stop()
        self.stop()

    def _write(self, message: bytes) -> None:
        if self._connection.is_busy or self._replies.size:
            self._replies.add(message + b"\n")
        else:
            self._writer.write(message + b"\n")

    async def _drain(self) -> None:
        if self._writer.waiting_bytes:
            await self._writer.drain()


class _ReadWatch:
    """Finds out when the client has read all that was written to a descriptor: the system then holds nothing for it."""

    def __init__(self, descriptor: int, has_waiting: Callable[[], bool]) -> None:
        self._descriptor = descriptor
        self._has_waiting = has_waiting
        self._waiters: list[asyncio.Future[None]] = []
        self._watching: asyncio.Task[None] | None = None

    async def wait(self) -> None:
        """Wait until everything so far is read; for so long at most, and not at all where the system does not tell."""
        if _unread_bytes(self._descriptor) is None:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        if self._watching is None:
            self._watching = asyncio.get_running_loop().create_task(self._watch())
        await asyncio.wait((waiter,), timeout=_READ_SECONDS)

    async def _watch(self) -> None:
        # By the clock, because no event says that the other end was read.
        while any(not waiter.done() for waiter in self._waiters):
            if not self._has_waiting() and not _unread_bytes(self._descriptor):
                for waiter in self._waiters:
                    if not waiter.done():
                        waiter.set_result(None)
            await asyncio.sleep(_LOOK_SECONDS)
        self._waiters.clear()
        self._watching = None


def _unread_bytes(descriptor: int) -> int | None:
    """What was written to a pipe or a socket and not read at its other end; None where the system does not tell."""
    if sys.platform != "linux":
        return None
    import fcntl
    import termios

    is_socket = stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    try:
        answer = fcntl.ioctl(descriptor, termios.TIOCOUTQ if is_socket else termios.FIONREAD, b"\0" * 4)
    except OSError:
        return None
    return int.from_bytes(answer, sys.byteorder)


async def serve_stdio(toolset: Toolset, options: ServeOptions | None = None) -> None:
    """Serve one client until it closes our input, or SIGTERM."""
    with redirect_stdout() as (read_from, write_to):
        await serve_descriptors(toolset, options, read_from=read_from, write_to=write_to)


async def serve_descriptors(
    toolset: Toolset, options: ServeOptions | None, *, read_from: int, write_to: int, grace: float = GRACE
) -> None:
    """Serve one client over two descriptors: pipes, sockets, a terminal or files."""
    server = build_server(toolset, options)
    transport = StdioTransport(server, read_from, write_to, grace=grace)
    async with server.open():
        with _stopped_by_sigterm(transport):
            await transport.run()


@contextlib.contextmanager
def _stopped_by_sigterm(transport: StdioTransport) -> Generator[None]:
    """End in order on SIGTERM: `SystemExit` closes what tools opened. Only the main thread takes signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before, signals = signal.getsignal(signal.SIGTERM), list[int]()

    def stop() -> None:
        signals.append(signal.SIGTERM)
        transport.stop()

    loop.add_signal_handler(signal.SIGTERM, stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        signal.signal(signal.SIGTERM, before)
    if signals:
        raise SystemExit(128 + signal.SIGTERM)
