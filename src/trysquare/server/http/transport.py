"""Transport of one HTTP connection that sends what is written in one turn of the event loop with one system call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from trysquare.core.concurrency import TurnBuffer


class JoiningTransport(asyncio.Transport):
    """Joins the writes of a turn. An HTTP server writes head and body of a response apart, and most are small."""

    def __init__(self, inner: asyncio.Transport) -> None:
        super().__init__()
        self._inner = inner
        self._written = TurnBuffer(self._send)

    def _send(self, parts: list[bytes]) -> None:
        if not self._inner.is_closing():
            self._inner.writelines(parts)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        # Copied unless it cannot change before it is sent.
        self._written.add(data if type(data) is bytes else bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        for data in list_of_data:
            self.write(data)

    def write_eof(self) -> None:
        self._written.flush()
        self._inner.write_eof()

    def close(self) -> None:
        self._written.flush()
        self._inner.close()

    def abort(self) -> None:
        self._written.take()
        self._inner.abort()

    def can_write_eof(self) -> bool:
        return self._inner.can_write_eof()

    def is_closing(self) -> bool:
        return self._inner.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._inner.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        return self._written.size + self._inner.get_write_buffer_size()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._inner.get_write_buffer_limits()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._inner.set_write_buffer_limits(high, low)

    def is_reading(self) -> bool:
        return self._inner.is_reading()

    def pause_reading(self) -> None:
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._inner.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._inner.set_protocol(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._inner.get_protocol()
