"""Views of a large result: the text that its server wrote for reading, and the JSON that a path leads into.

They are taken out of the answer when somebody first asks for them, and kept beside it. The text is taken out and read
in pieces, so that neither memory nor other callers suffer from a long one.
"""

from __future__ import annotations

import codecs
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trysquare.gateway.answers.kept_bytes import KeptBytes, Store
from trysquare.gateway.answers.parts import PIECE, Parts, pieces_of, split, texts_of


@dataclass(kw_only=True, slots=True)
class _Place:
    """Where a piece of a text begins."""

    byte: int = 0
    character: int = 0
    line: int = 0


class KeptText:
    """A text on the disk, with the places of its pieces."""

    def __init__(self, pieces: Iterable[str], store: Store) -> None:
        self._places: list[_Place] = []
        self._end = _Place()
        self.data = store(self._noted(pieces))

    def _noted(self, pieces: Iterable[str]) -> Iterator[bytes]:
        for piece in pieces:
            data, end = piece.encode(), self._end
            self._places.append(end)
            self._end = _Place(
                byte=end.byte + len(data),
                character=end.character + len(piece),
                line=end.line + piece.count("\n"),
            )
            yield data

    def slice(self, offset: int, length: int) -> tuple[str, bool]:
        """Some characters of the text, and whether more follow."""
        if offset >= self._end.character:
            return "", False
        first = bisect_right(self._places, offset, key=lambda place: place.character) - 1
        last = bisect_right(self._places, offset + length - 1, key=lambda place: place.character)
        begin = offset - self._places[first].character
        return self._read(first, last)[begin : begin + length], offset + length < self._end.character

    def lines(self, offset: int, length: int) -> tuple[str, bool]:
        """Some lines of the text, and whether more follow."""
        if offset > self._end.line:
            return "", False
        first = max(0, bisect_right(self._places, offset - 1, key=lambda place: place.line) - 1)
        last = bisect_right(self._places, offset + length - 1, key=lambda place: place.line)
        begin = offset - (self._places[first].line if self._places else 0)
        lines = self._read(first, last).split("\n")[begin : begin + length]
        return "\n".join(lines), offset + length <= self._end.line

    def _read(self, first: int, last: int) -> str:
        places = self._places
        start = places[first].byte if first < len(places) else self._end.byte
        return self.data.read(start, places[last].byte if last < len(places) else None).decode()


@dataclass(frozen=True, kw_only=True, slots=True)
class Views:
    """A result as it is read. `json` is the text's own bytes for a server that writes its JSON as text."""

    text: KeptText
    json: KeptBytes

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return self.text.data.size + (self.json.size if self.json is not self.text.data else 0)


def take_out_views(body: bytes, store: Store, *, is_result: bool) -> Views:
    """The views of an answer, or of something else that is kept as it is."""
    if not is_result:
        text = KeptText(_decoded(memoryview(body)), store)
        return Views(text=text, json=text.data)
    parts = split(body)
    text = KeptText(_text(parts), store)
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
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    for start in range(0, len(data), PIECE):
        yield decoder.decode(data[start : start + PIECE])
    yield decoder.decode(b"", final=True)
