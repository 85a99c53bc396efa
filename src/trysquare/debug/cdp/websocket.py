"""WebSocket: the client's side of RFC 6455, as much of it as a debugger on this machine needs."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import socket
from collections.abc import Callable
from typing import cast
from urllib.parse import urlsplit

_MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUED, _TEXT, _CLOSE, _PING, _PONG = 0x0, 0x1, 0x8, 0x9, 0xA
_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)
MAX_MESSAGE = 256 * 1024 * 1024


class WebSocketError(Exception):
    """The other side does not speak this protocol, or said something that it must not."""


class WebSocket(asyncio.Protocol):
    """One connection. Texts go to `on_text` in order; `on_lost` is called once, with the reason."""

    def __init__(self, url: str, *, on_text: Callable[[bytes], None], on_lost: Callable[[str], None]) -> None:
        self._url = urlsplit(url)
        self._on_text = on_text
        self._on_lost = on_lost
        self._key = base64.b64encode(os.urandom(16)).decode()
        self._buffer = bytearray()
        self._parts: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._socket: socket.socket | None = None
        self._lost = False
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def send_text(self, text: bytes) -> None:
        """Send one message."""
        self._send(_TEXT, text)

    def close(self) -> None:
        """Say good-bye and drop the connection."""
        if self._transport is not None and not self._lost:
            self._send(_CLOSE, b"\x03\xe8")
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._socket = transport.get_extra_info("socket")
        if self._socket is not None:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        path = self._url.path or "/"
        request = (
            f"GET {path} HTTP/1.1\r\nHost: {self._url.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {self._key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        self._transport.write(request.encode())

    def data_received(self, data: bytes) -> None:
        # The other side may wait for our acknowledgement between two pieces, which the system would hold back.
        if self._socket is not None and _QUICKACK is not None:
            self._socket.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
        self._buffer += data
        try:
            if self.opened.done() or self._take_handshake():
                self._take_frames()
        except WebSocketError as error:
            self._end(str(error))
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end("The connection was closed." if exc is None else f"The connection broke: {exc}")

    def _take_handshake(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = bytes(self._buffer[:end]).decode("latin-1")
        del self._buffer[: end + 4]
        accept = base64.b64encode(hashlib.sha1((self._key + _MAGIC).encode(), usedforsecurity=False).digest()).decode()
        if " 101 " not in head.split("\r\n")[0] or accept.lower() not in head.lower():
            raise WebSocketError(f"The other side refused: {head.splitlines()[0][:100]}")
        self.opened.set_result(None)
        return True

    def _take_frames(self) -> None:
        while (frame := _frame_of(self._buffer)) is not None:
            opcode, final, payload = frame
            self._take(opcode, final=final, payload=payload)

    def _take(self, opcode: int, *, final: bool, payload: bytes) -> None:
        if opcode in (_TEXT, _CONTINUED):
            self._parts.append(payload)
            if final:
                text = b"".join(self._parts)
                self._parts.clear()
                self._on_text(text)
        elif opcode == _PING:
            self._send(_PONG, payload)
        elif opcode == _CLOSE and self._transport is not None:
            self._transport.close()

    def _send(self, opcode: int, payload: bytes) -> None:
        if self._transport is None or self._lost:
            raise WebSocketError("The connection is closed.")
        size = len(payload)
        if size < 126:
            head = bytes((0x80 | opcode, 0x80 | size))
        elif size < 65536:
            head = bytes((0x80 | opcode, 0x80 | 126)) + size.to_bytes(2, "big")
        else:
            head = bytes((0x80 | opcode, 0x80 | 127)) + size.to_bytes(8, "big")
        # A mask of zeros is a mask: what it is for, old proxies between the two, is not on this machine.
        self._transport.write(head + b"\0\0\0\0" + payload)

    def _end(self, reason: str) -> None:
        if self._lost:
            return
        self._lost = True
        if not self.opened.done():
            self.opened.set_exception(WebSocketError(reason))
            self.opened.exception()
        self._on_lost(reason)


def _frame_of(buffer: bytearray) -> tuple[int, bool, bytes] | None:
    """Take the first whole frame out of a buffer, or None where it is not all there yet."""
    if len(buffer) < 2:
        return None
    opcode, final, size, start = buffer[0] & 0x0F, bool(buffer[0] & 0x80), buffer[1] & 0x7F, 2
    if size >= 126:
        start = 4 if size == 126 else 10
        if len(buffer) < start:
            return None
        size = int.from_bytes(buffer[2:start], "big")
    if size > MAX_MESSAGE:
        raise WebSocketError(f"A message of {size} bytes is more than the {MAX_MESSAGE} that are read.")
    if len(buffer) < start + size:
        return None
    payload = bytes(buffer[start : start + size])
    del buffer[: start + size]
    return opcode, final, payload


async def open_websocket(
    url: str, *, on_text: Callable[[bytes], None], on_lost: Callable[[str], None], timeout: float = 10.0
) -> WebSocket:
    """Connect, and wait until messages can be sent."""
    place = urlsplit(url)
    connection = WebSocket(url, on_text=on_text, on_lost=on_lost)
    async with asyncio.timeout(timeout):
        await asyncio.get_running_loop().create_connection(lambda: connection, place.hostname or "", place.port or 0)
        await connection.opened
    return connection
