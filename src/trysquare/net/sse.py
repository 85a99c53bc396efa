"""Server-sent events parser, bounded and in linear time; data stays bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventTooLong(Exception):
    """An event exceeds the limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One event of a stream."""

    name: str
    data: bytes
    """Several lines are joined by spaces, which is the same between parts of a JSON text."""
    id: str | None = None
    """Last event id of the stream, for resuming."""


class EventReader:
    """Incremental parser of a stream."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        """Pieces of an incomplete line, joined once: a long line takes linear time."""
        self._line_bytes = self._data_bytes = 0
        self._after_return = False
        self._is_first = True
        self._name, self._data = "", list[bytes]()
        self.last_id: str | None = None
        self.retry_seconds: float | None = None
        """Reconnection time that the server asks for."""

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Events completed by this chunk. Raises `EventTooLong`."""
        if not chunk:
            return
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_return = chunk.endswith(b"\r")
        for line in chunk.splitlines(keepends=True):
            self._line_bytes += len(line)
            if self._line_bytes + self._data_bytes > self._max_bytes:
                raise EventTooLong
            self._pieces.append(line)
            if line.endswith((b"\n", b"\r")):
                yield from self._parse(self._join())

    def _join(self) -> bytes:
        line = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._line_bytes = 0
        if self._is_first:
            self._is_first = False
            return line.removeprefix(_BYTE_ORDER_MARK)
        return line

    def _parse(self, line: bytes) -> Iterator[Event]:
        end = len(line) - (2 if line.endswith(b"\r\n") else 1)
        if end == 0:
            yield from self._finish()
        elif line.startswith(b"data:"):
            # One slice only: large results pass here.
            value = line[6 if line.startswith(b"data: ") else 5 : end]
            self._data.append(value)
            self._data_bytes += len(value)
        else:
            self._set_field(line[:end])

    def _set_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
            case b"event":
                self._name = value.decode("utf-8", "replace")
            case b"id" if b"\0" not in value:
                self.last_id = value.decode("utf-8", "replace") or None
            case b"retry" if value.isdigit():
                self.retry_seconds = int(value[:9]) / 1000
            case _:
                pass  # a comment, or an unknown field

    def _finish(self) -> Iterator[Event]:
        name, data = self._name or "message", self._data
        self._name, self._data, self._data_bytes = "", [], 0
        if data:
            yield Event(name=name, data=data[0] if len(data) == 1 else b" ".join(data), id=self.last_id)
