"""Transport of one HTTP connection that sends the head of a response together with the beginning of its body."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any


class JoiningTransport(asyncio.Transport):
    """Keeps what is written while `holds`, and sends it with what is written next, by one system call.

    An HTTP server writes head and body of a response apart, and most responses are small.
    """

    def __init__(self, inner: asyncio.Transport) -> None:
        super().__init__()
        self._inner = inner
        self._held: list[bytes] = []
        self.holds = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.holds:
            # Copied unless it cannot change before it is sent.
            self._held.append(data if type(data) is bytes else bytes(data))
        elif self._held:
            self._flush(data)
        else:
            self._inner.write(data)

    def _flush(self, *data: bytes | bytearray | memoryview) -> None:
        parts, self._held = [*self._held, *data], []
        if parts and not self._inner.is_closing():
            self._inner.writelines(parts)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        self._flush()
        self._inner.write_eof()

    def close(self) -> None:
        self._flush()
        self._inner.close()

    def abort(self) -> None:
        self._held.clear()
        self._inner.abort()

    def can_write_eof(self) -> bool:
        return self._inner.can_write_eof()

    def is_closing(self) -> bool:
        return self._inner.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._inner.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self._held)) + self._inner.get_write_buffer_size()

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
