"""OutputLog: what a program wrote, bounded, and read in pages by a cursor that never repeats and tells what is gone."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from trysquare.debug.debugger import Output, OutputStream

LIMIT = 256 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputPage:
    """Some of the output. `cursor` leads to what comes after it; `lost` counts what was dropped before it."""

    text: str
    cursor: int
    lost: int = 0
    more: bool = False


class OutputLog:
    """The last of what a program wrote. Positions count characters from its start, also those that are gone."""

    def __init__(self, *, limit: int = LIMIT) -> None:
        self._pieces: deque[tuple[OutputStream, str]] = deque()
        self._kept = 0
        self._end = 0
        self._limit = limit

    @property
    def total(self) -> int:
        """Characters written so far."""
        return self._end

    def add(self, output: Output) -> None:
        """Take another piece; the oldest goes when there is too much."""
        text = output.text[-self._limit :]
        self._end += len(output.text)
        self._pieces.append((output.stream, text))
        self._kept += len(text)
        while self._kept > self._limit:
            stream, oldest = self._pieces.popleft()
            too_much = self._kept - self._limit
            if len(oldest) > too_much:
                self._pieces.appendleft((stream, oldest[too_much:]))
            self._kept -= min(len(oldest), too_much)

    def page(self, cursor: int = 0, *, size: int = 4000, stream: OutputStream | None = None) -> OutputPage:
        """What was written from a position on, at most `size` characters of it."""
        first = self._end - self._kept
        begin = max(cursor, first)
        end = min(begin + size, self._end)
        return OutputPage(
            text=self._between(begin - first, end - first, stream),
            cursor=max(end, begin),
            lost=max(0, first - max(cursor, 0)),
            more=end < self._end,
        )

    def tail(self, size: int = 2000) -> str:
        """The last characters."""
        return self.page(self._end - min(size, self._kept), size=size).text

    def _between(self, begin: int, end: int, stream: OutputStream | None) -> str:
        found: list[str] = []
        position = 0
        for piece_stream, text in self._pieces:
            if position >= end:
                break
            if position + len(text) > begin and (stream is None or stream == piece_stream):
                found.append(text[max(0, begin - position) : end - position])
            position += len(text)
        return "".join(found)
