"""Server-sent events: bytes in any pieces become events, in time linear in their length; the data stays unread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TooLong(Exception):
    """An event is longer than it may be."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One event of a stream."""

    name: str
    data: bytes
    """Without a line break: several lines are joined by spaces, since between the parts of a JSON text both are one."""
    id: str | None = None
    """The last id that the stream has named, for going on after it."""


class EventReader:
    """Takes a stream apart as it comes."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._pieces: list[bytes] = []
        """A line whose end has not come yet. Joined once, so that a long line costs no more than its length."""
        self._line_bytes = self._data_bytes = 0
        self._after_return = False
        self._is_first = True
        self._name, self._data = "", list[bytes]()
        self.last_id: str | None = None
        self.retry_seconds: float | None = None
        """How long the server wants us to wait before we come again."""

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that are whole with this piece. Raises TooLong."""
        if not chunk:
            return
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_return = chunk.endswith(b"\r")
        for line in chunk.splitlines(keepends=True):
            self._line_bytes += len(line)
            if self._line_bytes + self._data_bytes > self._most_bytes:
                raise TooLong
            self._pieces.append(line)
            if line.endswith((b"\n", b"\r")):
                yield from self._take(self._joined())

    def _joined(self) -> bytes:
        """The whole line, with its end."""
        line = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._line_bytes = 0
        if self._is_first:
            self._is_first = False
            return line.removeprefix(_BYTE_ORDER_MARK)
        return line

    def _take(self, line: bytes) -> Iterator[Event]:
        end = len(line) - (2 if line.endswith(b"\r\n") else 1)
        if end == 0:
            yield from self._ended()
        elif line.startswith(b"data:"):
            # One slice and no more: this is where a large result passes.
            value = line[6 if line.startswith(b"data: ") else 5 : end]
            self._data.append(value)
            self._data_bytes += len(value)
        else:
            self._note(*_field(line[:end]))

    def _note(self, name: bytes, value: bytes) -> None:
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
                pass  # a comment, or a field of a later day

    def _ended(self) -> Iterator[Event]:
        name, data = self._name or "message", self._data
        self._name, self._data, self._data_bytes = "", [], 0
        if data:
            yield Event(name=name, data=data[0] if len(data) == 1 else b" ".join(data), id=self.last_id)


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name, value[1:] if value.startswith(b" ") else value
