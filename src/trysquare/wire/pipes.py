"""Pipes: lines in and bytes out of file descriptors, on the event loop, without a thread a line.

Neither end is switched to non-blocking mode, because that would change it for every process that shares it. Whoever
owns an end alone may have done so before; then a write takes no question to the kernel first.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import stat
import threading
from collections import deque
from collections.abc import Callable

_CHUNK = 64 * 1024
_LARGEST_CHUNK = 1024 * 1024
_LARGE_LINE = 1024 * 1024
_PIPE_ROOM = 4096
"""What a pipe takes without blocking whenever it says that it takes anything (one page)."""
_HIGH_WATER = 1024 * 1024


class LineSplitter:
    """Cuts chunks of bytes into lines. A line over the limit is dropped up to its end and reported as None."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._large: bytearray | None = None
        """A long line as far as it has come. It grows in place, so that its end takes no longer than its middle."""

    def feed(self, chunk: bytes) -> list[bytes | bytearray | None]:
        """The lines that are complete now."""
        *ends, rest = chunk.split(b"\n")
        lines = [self._completed(end) for end in ends]
        self._keep(rest)
        return lines

    def finish(self) -> list[bytes | bytearray | None]:
        """What was left when the input ended without a newline."""
        return [self._completed(b"")] if self._size else []

    def _completed(self, end: bytes) -> bytes | bytearray | None:
        self._keep(end)
        line = self._large if self._large is not None else b"".join(self._parts)
        is_over = self._size > self._limit
        self._parts, self._size, self._large = [], 0, None
        return None if is_over else line

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            self._parts.clear()
            self._large = None
        elif self._large is not None:
            self._large += part
        elif self._size > _LARGE_LINE:
            self._large = bytearray(b"".join(self._parts))
            self._large += part
            self._parts.clear()
        else:
            self._parts.append(part)


class Inlet:
    """Reads a descriptor and hands on what comes, until it ends."""

    def __init__(self, descriptor: int, hear: Callable[[bytes], None]) -> None:
        self._descriptor = descriptor
        self._hear = hear
        self._loop = asyncio.get_running_loop()
        self._polled = True
        self._ended = False
        self._chunk = _CHUNK

    def start(self) -> None:
        """Begin to read. An empty chunk means that the input has ended."""
        try:
            self._loop.add_reader(self._descriptor, self._ready)
        except (PermissionError, OSError):
            # A regular file cannot be polled; it is read by a thread instead.
            self._polled = False
            threading.Thread(target=self._read_all, name="trysquare-stdin", daemon=True).start()

    def pause(self) -> None:
        """Read no more for now."""
        if self._polled and not self._ended:
            self._loop.remove_reader(self._descriptor)

    def resume(self) -> None:
        """Read on."""
        if self._polled and not self._ended:
            self._loop.add_reader(self._descriptor, self._ready)

    def stop(self) -> None:
        """Read no more at all."""
        self.pause()
        self._ended = True

    def _ready(self) -> None:
        try:
            chunk = os.read(self._descriptor, self._chunk)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self.stop()
        # A long line is read in larger chunks. Many short ones are not, lest they hold up everybody else.
        is_long = len(chunk) == self._chunk and b"\n" not in chunk
        self._chunk = min(2 * self._chunk, _LARGEST_CHUNK) if is_long else _CHUNK
        self._hear(chunk)

    def _read_all(self) -> None:
        while chunk := os.read(self._descriptor, _CHUNK):
            self._loop.call_soon_threadsafe(self._hear, chunk)
        self._loop.call_soon_threadsafe(self._hear, b"")


class Outlet:
    """Writes to a descriptor as far as it takes bytes, and keeps the rest until it takes more."""

    def __init__(self, descriptor: int, lost: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[memoryview] = deque()
        self.waiting_bytes = 0
        self._drained = asyncio.Event()
        self._drained.set()
        self._broken = False
        self._socket = _socket_at(descriptor)
        self._write = _socket_writing(self._socket) if self._socket else _writing(descriptor)

    def write(self, data: bytes) -> None:
        """Write, now or as soon as the other side reads."""
        if self._broken:
            return
        if self._waiting:
            self._keep(memoryview(data))
            return
        rest = self._attempt(memoryview(data))
        if len(rest) and not self._broken:
            self._keep(rest)
            self._loop.add_writer(self._descriptor, self._ready)

    async def drain(self, below: int = _HIGH_WATER) -> None:
        """Wait until less than this is waiting."""
        while self.waiting_bytes >= below and self._waiting:
            self._drained.clear()
            await self._drained.wait()

    def close(self) -> None:
        """Write no more. The descriptor itself stays open, since it is somebody else's."""
        self._broken = True
        self._forget_waiting()
        if self._socket is not None:
            self._socket.close()

    def _keep(self, rest: memoryview) -> None:
        self._waiting.append(rest)
        self.waiting_bytes += len(rest)

    def _ready(self) -> None:
        while self._waiting and not self._broken:
            head = self._waiting.popleft()
            rest = self._attempt(head)
            self.waiting_bytes -= len(head) - len(rest)
            if len(rest):
                self._waiting.appendleft(rest)
                break
        if not self._waiting:
            self._loop.remove_writer(self._descriptor)
        self._drained.set()

    def _attempt(self, data: memoryview) -> memoryview:
        try:
            while len(data) and (written := self._write(data)):
                data = data[written:]
        except OSError:
            self._break()
            return data[len(data) :]
        return data

    def _break(self) -> None:
        self._broken = True
        self._forget_waiting()
        self._lost()

    def _forget_waiting(self) -> None:
        self._loop.remove_writer(self._descriptor)
        self._waiting.clear()
        self.waiting_bytes = 0
        self._drained.set()


def _writing(descriptor: int) -> Callable[[memoryview], int]:
    """How to write without blocking: a function that returns the bytes taken, 0 for none now."""
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return lambda data: os.write(descriptor, data)
    if not os.get_blocking(descriptor):
        return lambda data: _written_at_once(descriptor, data)
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)

    def write(data: memoryview) -> int:
        if not poll.poll(0):
            return 0
        return os.write(descriptor, data[:_PIPE_ROOM])

    return write


def _written_at_once(descriptor: int, data: memoryview) -> int:
    try:
        return os.write(descriptor, data)
    except BlockingIOError:
        return 0


def _socket_at(descriptor: int) -> socket.socket | None:
    is_socket = stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    return socket.socket(fileno=os.dup(descriptor)) if is_socket else None


def _socket_writing(connection: socket.socket) -> Callable[[memoryview], int]:
    def write(data: memoryview) -> int:
        try:
            return connection.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0

    return write
