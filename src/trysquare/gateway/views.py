"""Views of a large result: the text that its server wrote for reading, and the JSON that a path leads into.

They are taken out of the answer when somebody first asks for them, and kept beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from trysquare.gateway.large import KeptBytes, KeptResult, LargeResults
from trysquare.gateway.parts import split, string_of, texts_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Views:
    """A result as it is read. `json` is the text itself for a server that writes its JSON as text."""

    text: KeptBytes
    json: KeptBytes
    is_ascii: bool

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return self.text.size + (self.json.size if self.json is not self.text else 0)

    def slice(self, offset: int, length: int) -> tuple[str, bool]:
        """Some characters of the text, and whether more follow."""
        if self.is_ascii:
            return self.text.read(offset, offset + length).decode("ascii"), offset + length < self.text.size
        text = self.text.read().decode()
        return text[offset : offset + length], offset + length < len(text)

    def lines(self, offset: int, length: int) -> tuple[str, bool]:
        """Some lines of the text, and whether more follow."""
        lines = self.text.read().decode().split("\n")
        return "\n".join(lines[offset : offset + length]), offset + length < len(lines)


def views_of(kept: KeptResult, results: LargeResults) -> Views:
    """The views of a result. The first time it takes a moment: call it in a thread."""
    if kept.views is None:
        kept.views = _made(kept, results)
    return kept.views


def _made(kept: KeptResult, results: LargeResults) -> Views:
    if kept.mime_type is not None:
        return Views(text=kept.body, json=kept.body, is_ascii=True)
    parts = split(kept.body.read())
    structured = results.store(parts.structured) if len(parts.structured) else None
    texts = texts_of(parts)
    if texts:
        data = "\n".join(string_of(token) for token in texts).encode()
    else:
        data = bytes(parts.structured if parts.whole is None else parts.whole).decode(errors="replace").encode()
    text = results.store(data)
    return Views(text=text, json=structured or text, is_ascii=data.isascii())
