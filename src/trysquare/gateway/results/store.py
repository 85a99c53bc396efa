"""Store of large results on disk, and their text and JSON views."""

from __future__ import annotations

import codecs
import os
import secrets
import tempfile
import threading
import time
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.core.json import JsonObject
from trysquare.gateway.results.parts import PIECE, Parts, pieces_of, split, texts_of


class SpillFile:
    """Bytes in an unlinked file, which is freed with this object or the process."""

    def __init__(self, pieces: Iterable[bytes | memoryview], folder: Path) -> None:
        self.descriptor, path = tempfile.mkstemp(dir=folder)
        os.unlink(path)
        self.size = 0
        for piece in pieces:
            left = memoryview(piece)
            self.size += len(left)
            while left:
                left = left[os.write(self.descriptor, left) :]

    def __del__(self) -> None:
        if (descriptor := getattr(self, "descriptor", None)) is not None:
            os.close(descriptor)

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        left = (self.size if end is None else min(end, self.size)) - start
        parts: list[bytes] = []
        while left > 0 and (part := os.pread(self.descriptor, left, start)):
            parts.append(part)
            start, left = start + len(part), left - len(part)
        return b"".join(parts)


Store: TypeAlias = Callable[[Iterable[bytes | memoryview]], SpillFile]
"""Writes pieces of bytes to disk."""
ReadOn: TypeAlias = Callable[[JsonObject], JsonObject]
"""Read arguments -> the complete call, for `next`."""

LIFETIME = 3600.0
MAX_RESULTS = 64
MAX_BYTES = 1024 * 1024 * 1024
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"


@dataclass(kw_only=True, slots=True, eq=False)
class StoredResult:
    handle: str
    principal: str
    server: str
    tool: str
    expires: float
    body: SpillFile
    mime_type: str | None = None
    """Set for binary data, which is stored as base64."""
    views: Views | None = None
    """Made by the first read."""

    @property
    def size(self) -> int:
        return self.body.size + (0 if self.views is None else self.views.size)


class ResultStore:
    """The stored results of this process by handle, each owned by one principal. Thread-safe.

    Results expire; over a limit, the least recently used of the principal with most bytes is dropped.
    """

    def __init__(
        self,
        folder: Path,
        *,
        max_results: int = MAX_RESULTS,
        max_bytes: int = MAX_BYTES,
        lifetime: float = LIFETIME,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder = folder
        self._max_results, self._max_bytes = max_results, max_bytes
        self._lifetime, self._clock = lifetime, clock
        self._results: OrderedDict[str, StoredResult] = OrderedDict()
        self._lock = threading.Lock()

    def put(
        self, data: bytes | memoryview, *, principal: str, server: str, tool: str, mime_type: str | None = None
    ) -> StoredResult:
        stored = StoredResult(
            handle="".join(secrets.choice(_ALPHABET) for _ in range(10)),
            principal=principal,
            server=server,
            tool=tool,
            expires=self._clock() + self._lifetime,
            body=self.store((data,)),
            mime_type=mime_type,
        )
        with self._lock:
            self._results[stored.handle] = stored
            self._evict()
        return stored

    def views_of(self, stored: StoredResult) -> Views:
        """The views of a result, made by the first call, which belongs in a thread."""
        if stored.views is None:
            stored.views = make_views(stored.body.read(), self.store, is_result=stored.mime_type is None)
        return stored.views

    def store(self, pieces: Iterable[bytes | memoryview]) -> SpillFile:
        """Write bytes to disk. Raises a `ToolError` if that fails."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return SpillFile(pieces, self.folder)
        except OSError as error:
            raise ToolError(
                f"The result is too large to return, and cannot be stored ({error}).",
                code=ErrorCode.STATE_UNAVAILABLE,
                instruction="The call took effect: do not repeat it. Ask the user to free disk space.",
                fields={"outcome": "done"},
            ) from error

    def find(self, handle: str, *, principal: str) -> StoredResult:
        """The result of a handle. The error is the same for expired, unknown and foreign handles."""
        with self._lock:
            found = self._results.get(handle)
            if found is None or found.principal != principal or found.expires <= self._clock():
                raise NotFound(
                    f"Unknown handle `{handle[:40]}`: it has expired or never existed.",
                    code=ErrorCode.HANDLE_NOT_FOUND,
                    instruction="Repeat the call that produced it, if that is harmless.",
                )
            self._results.move_to_end(handle)
            return found

    def close(self) -> None:
        with self._lock:
            self._results.clear()

    def _evict(self) -> None:
        now = self._clock()
        for handle in [handle for handle, one in self._results.items() if one.expires <= now]:
            del self._results[handle]
        while len(self._results) > 1:
            sizes: Counter[str] = Counter()
            for one in self._results.values():
                sizes[one.principal] += one.size
            if len(self._results) <= self._max_results and sizes.total() <= self._max_bytes:
                return
            largest = max(sizes, key=lambda principal: sizes[principal])
            del self._results[next(handle for handle, one in self._results.items() if one.principal == largest)]


class _Position(NamedTuple):
    """The start of a piece of text."""

    byte: int = 0
    character: int = 0
    line: int = 0


class StoredText:
    """A text on disk, written and read in pieces, with the position of each."""

    def __init__(self, pieces: Iterable[str], store: Store) -> None:
        self._positions: list[_Position] = []
        self._end = _Position()
        self.data = store(self._indexed(pieces))

    def _indexed(self, pieces: Iterable[str]) -> Iterator[bytes]:
        for piece in pieces:
            data, end = piece.encode(), self._end
            self._positions.append(end)
            self._end = _Position(end.byte + len(data), end.character + len(piece), end.line + piece.count("\n"))
            yield data

    def slice(self, offset: int, length: int) -> tuple[str, bool]:
        """Characters of the text, and whether more follow."""
        if offset >= self._end.character:
            return "", False
        first = bisect_right(self._positions, offset, key=lambda position: position.character) - 1
        last = bisect_right(self._positions, offset + length - 1, key=lambda position: position.character)
        begin = offset - self._positions[first].character
        return self._read(first, last)[begin : begin + length], offset + length < self._end.character

    def lines(self, offset: int, length: int) -> tuple[str, bool]:
        """Lines of the text, and whether more follow."""
        if offset > self._end.line:
            return "", False
        first = max(0, bisect_right(self._positions, offset - 1, key=lambda position: position.line) - 1)
        last = bisect_right(self._positions, offset + length - 1, key=lambda position: position.line)
        begin = offset - (self._positions[first].line if self._positions else 0)
        lines = self._read(first, last).split("\n")[begin : begin + length]
        return "\n".join(lines), offset + length <= self._end.line

    def _read(self, first: int, last: int) -> str:
        positions = self._positions
        start = positions[first].byte if first < len(positions) else self._end.byte
        return self.data.read(start, positions[last].byte if last < len(positions) else None).decode()


@dataclass(frozen=True, kw_only=True, slots=True)
class Views:
    """The text and the JSON of a result; the same bytes for a server that returns its JSON as text."""

    text: StoredText
    json: SpillFile

    @property
    def size(self) -> int:
        return self.text.data.size + (self.json.size if self.json is not self.text.data else 0)


def make_views(body: bytes, store: Store, *, is_result: bool) -> Views:
    if not is_result:
        text = StoredText(_decoded(memoryview(body)), store)
        return Views(text=text, json=text.data)
    parts = split(body)
    text = StoredText(_text(parts), store)
    return Views(text=text, json=store((parts.structured,)) if len(parts.structured) else text.data)


def _text(parts: Parts) -> Iterator[str]:
    texts = texts_of(parts)
    if not texts:
        yield from _decoded(parts.structured if parts.whole is None else parts.whole)
    for number, token in enumerate(texts):
        if number:
            yield "\n"
        yield from pieces_of(token)


def _decoded(data: memoryview) -> Iterator[str]:
    pieces = (bytes(data[start : start + PIECE]) for start in range(0, len(data), PIECE))
    return codecs.iterdecode(pieces, "utf-8", errors="replace")
