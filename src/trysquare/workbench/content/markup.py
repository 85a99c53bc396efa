"""Markup: the plain text of a piece of HTML, as feeds put it into their summaries."""

from __future__ import annotations

from html.parser import HTMLParser

_HIDDEN = frozenset({"script", "style", "template", "head", "noscript"})
_BREAKS = frozenset({"p", "br", "div", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote"})


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self._hidden += 1
        elif tag in _BREAKS:
            self.pieces.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in _HIDDEN and self._hidden:
            self._hidden -= 1
        elif tag in _BREAKS:
            self.pieces.append(" ")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.pieces.append(data)


def plain_text(html: str) -> str:
    """What a reader sees of a piece of HTML, with single spaces."""
    reader = _Text()
    reader.feed(html)
    reader.close()
    return " ".join("".join(reader.pieces).split())
