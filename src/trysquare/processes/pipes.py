"""Pipes on the event loop: lines in, bytes out; stdin and stdout reserved for a protocol.

Neither end is switched to non-blocking mode, because that would change it for every process that shares it. An end that
is non-blocking already is written without polling first.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from trysquare.core.errors import ConfigurationError

_CHUNK = 64 * 1024
_LARGEST_CHUNK = 1024 * 1024
_LARGE_LINE = 1024 * 1024
_PIPE_CAPACITY = 4096
"""Bytes that a writable pipe accepts without blocking (one page)."""
_HIGH_WATER = 1024 * 1024


class LineBuffer:
    """Split chunks of bytes into lines. A line over the limit is dropped and reported as None."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._large: bytearray | None = None
        """A long line so far; it grows in place, which takes linear time."""

    def feed(self, chunk: bytes) -> list[bytes | bytearray | None]:
        """Lines completed by this chunk."""
        *ends, rest = chunk.split(b"\n")
        # Nearly all lines come whole, and are what they are.
        is_whole = not self._size and len(chunk) <= self._limit
        lines: list[bytes | bytearray | None] = [*ends] if is_whole else [self._complete(end) for end in ends]
        if rest:
            self._add(rest)
        return lines

    def finish(self) -> list[bytes | bytearray | None]:
        """Rest of an input without a final newline."""
        return [self._complete(b"")] if self._size else []

    def _complete(self, end: bytes) -> bytes | bytearray | None:
        self._add(end)
        line = self._large if self._large is not None else b"".join(self._parts)
        is_over = self._size > self._limit
        self._parts, self._size, self._large = [], 0, None
        return None if is_over else line

    def _add(self, part: bytes) -> None:
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


class PipeReader:
    """Read a descriptor and pass its chunks to a function, until it ends."""

    def __init__(self, descriptor: int, receive: Callable[[bytes], None]) -> None:
        self._descriptor = descriptor
        self._receive = receive
        self._loop = asyncio.get_running_loop()
        self._polled = True
        self._ended = False
        self._chunk = _CHUNK

    def start(self) -> None:
        """Start reading. An empty chunk means the end of input."""
        try:
            self._loop.add_reader(self._descriptor, self._ready)
        except (PermissionError, OSError):
            # A regular file cannot be polled, so a thread reads it.
            self._polled = False
            threading.Thread(target=self._read_all, name="trysquare-stdin", daemon=True).start()

    def pause(self) -> None:
        if self._polled and not self._ended:
            self._loop.remove_reader(self._descriptor)

    def resume(self) -> None:
        if self._polled and not self._ended:
            self._loop.add_reader(self._descriptor, self._ready)

    def stop(self) -> None:
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
        # Larger chunks for long lines only: many short lines in one chunk would block the loop.
        is_long = len(chunk) == self._chunk and b"\n" not in chunk
        self._chunk = min(2 * self._chunk, _LARGEST_CHUNK) if is_long else _CHUNK
        self._receive(chunk)

    def _read_all(self) -> None:
        while chunk := os.read(self._descriptor, _CHUNK):
            self._loop.call_soon_threadsafe(self._receive, chunk)
        self._loop.call_soon_threadsafe(self._receive, b"")


class PipeWriter:
    """Write to a descriptor without blocking, and buffer the rest."""

    def __init__(self, descriptor: int, on_lost: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[memoryview] = deque()
        self.waiting_bytes = 0
        self._drained = asyncio.Event()
        self._drained.set()
        self._broken = False
        self._socket = _socket_at(descriptor)
        self._write = _socket_writer(self._socket) if self._socket else _descriptor_writer(descriptor)

    def write(self, data: bytes) -> None:
        """Write now, or as soon as the descriptor is writable."""
        if self._broken:
            return
        if self._waiting:
            self._buffer(memoryview(data))
            return
        rest = self._attempt(memoryview(data))
        if len(rest) and not self._broken:
            self._buffer(rest)
            self._loop.add_writer(self._descriptor, self._ready)

    async def drain(self, below: int = _HIGH_WATER) -> None:
        """Wait until fewer bytes are buffered."""
        while self.waiting_bytes >= below and self._waiting:
            self._drained.clear()
            await self._drained.wait()

    def close(self) -> None:
        """Stop writing. The descriptor stays open: its owner closes it."""
        self._broken = True
        self._clear()
        if self._socket is not None:
            self._socket.close()

    def _buffer(self, rest: memoryview) -> None:
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
        self._clear()
        self._on_lost()

    def _clear(self) -> None:
        self._loop.remove_writer(self._descriptor)
        self._waiting.clear()
        self.waiting_bytes = 0
        self._drained.set()


def _descriptor_writer(descriptor: int) -> Callable[[memoryview], int]:
    """Non-blocking write function that returns the number of bytes written, 0 for none."""
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return lambda data: os.write(descriptor, data)
    if not os.get_blocking(descriptor):
        return lambda data: _try_write(lambda: os.write(descriptor, data))
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)

    def write(data: memoryview) -> int:
        if not poll.poll(0):
            return 0
        return os.write(descriptor, data[:_PIPE_CAPACITY])

    return write


def _try_write(write: Callable[[], int]) -> int:
    try:
        return write()
    except BlockingIOError:
        return 0


def _socket_at(descriptor: int) -> socket.socket | None:
    is_socket = stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    return socket.socket(fileno=os.dup(descriptor)) if is_socket else None


def _socket_writer(connection: socket.socket) -> Callable[[memoryview], int]:
    return lambda data: _try_write(lambda: connection.send(data, socket.MSG_DONTWAIT))


@contextmanager
def redirect_stdout() -> Generator[tuple[int, int]]:
    """Reserve stdin and stdout for the protocol: other output goes to stderr, and other input is empty.

    The descriptors themselves are moved, so that this includes C libraries and child processes.
    """
    require_open()
    private_in, private_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        os.dup2(nothing, 0)
        os.dup2(2 if _is_open(2) else nothing, 1)
        yield private_in, private_out
    finally:
        # Buffered output belongs to stderr; if that is closed, it is dropped.
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os.dup2(private_in, 0)
        os.dup2(private_out, 1)
        for descriptor in (private_in, private_out, nothing):
            os.close(descriptor)


def require_open() -> None:
    """Require open standard input and output; called before their numbers are reused."""
    if not (_is_open(0) and _is_open(1)):
        raise ConfigurationError(
            "Standard input or output is closed.", hint="Let an MCP client start this command, or use --http."
        )


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
