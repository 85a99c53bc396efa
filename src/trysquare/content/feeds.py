"""Parsers of RSS and Atom feeds, with bounded XML, and of HTML as text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from itertools import islice
from typing import NoReturn
from urllib.parse import urljoin
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from trysquare.core.untrusted import folded

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
    """The visible text of a piece of HTML, with single spaces."""
    reader = _Text()
    reader.feed(html)
    reader.close()
    return " ".join("".join(reader.pieces).split())


MAX_DEPTH = 64
MAX_ELEMENTS = 50_000


class NoFeed(Exception):
    """Bytes that are not a feed."""


class _Builder:
    def __init__(self) -> None:
        self.tree = TreeBuilder()
        self._depth = 0
        self._count = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._count += 1
        if self._depth > MAX_DEPTH:
            raise NoFeed(f"invalid XML: elements are nested more than {MAX_DEPTH} deep")
        if self._count > MAX_ELEMENTS:
            raise NoFeed(f"invalid XML: there are more than {MAX_ELEMENTS:,} elements")
        self.tree.start(name, attributes)

    def end(self, name: str) -> None:
        self._depth -= 1
        self.tree.end(name)


def parse_xml(data: bytes) -> Element:
    """The tree of a document; names are `{namespace}name`. Raises `NoFeed`.

    Expat is driven directly, since only there an entity declaration can be rejected before it takes effect.
    """
    builder = _Builder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, attributes: builder.start(_braced(name), attributes)
    parser.EndElementHandler = lambda name: builder.end(_braced(name))
    parser.CharacterDataHandler = builder.tree.data
    parser.EntityDeclHandler = _refuse_entity
    parser.ExternalEntityRefHandler = _refuse_entity
    parser.SkippedEntityHandler = _refuse_entity
    try:
        parser.Parse(data, True)
        return builder.tree.close()
    except expat.ExpatError as error:
        raise NoFeed(f"invalid XML: {expat.ErrorString(error.code)} in line {error.lineno}") from None
    except (LookupError, ValueError) as error:
        raise NoFeed(f"invalid XML: unsupported encoding ({str(error)[:80]})") from None


def _refuse_entity(*declared: object) -> NoReturn:
    raise NoFeed("invalid XML: entities are not allowed")


def _braced(name: str) -> str:
    return "{" + name if "}" in name else name


MAX_ENTRIES = 200
MAX_SUMMARY = 500
_ITEMS = frozenset({"item", "entry"})
_SUMMARIES = ("description", "summary", "encoded", "content")
_DATES = ("pubDate", "published", "date", "updated", "modified", "issued")


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    title: str
    link: str | None = None
    published: str | None = None
    """ISO 8601 in UTC where the feed's date can be parsed, else as written there."""
    author: str | None = None
    summary: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Feed:
    """A feed with its newest entries, in its own order."""

    title: str
    entries: tuple[Entry, ...]
    link: str | None = None


def parse_feed(data: bytes, *, base: str = "") -> Feed:
    """Parse RSS 2.0, RSS 1.0 or Atom. Relative links are resolved against `base`."""
    if not data.strip():
        raise NoFeed("empty response")
    root = parse_xml(data)
    kind = _name(root)
    if kind not in ("rss", "RDF", "feed"):
        raise NoFeed(f"the root element is <{folded(kind, 40)}>, not <rss>, <rdf:RDF> or <feed>")
    channel = next((child for child in root if _name(child) == "channel"), root)
    # RSS 2.0 and Atom have the entries inside the channel, RSS 1.0 next to it.
    holders = (channel,) if channel is root else (channel, root)
    items = (child for holder in holders for child in holder if _name(child) in _ITEMS)
    entries = tuple(_entry(item, base) for item in islice(items, MAX_ENTRIES))
    return Feed(title=_line(channel, "title") or "(no title)", link=_link(channel, base), entries=entries)


def _entry(item: Element, base: str) -> Entry:
    return Entry(
        title=_line(item, "title") or "(no title)",
        link=_link(item, base),
        published=_date(item),
        author=_author(item),
        summary=folded(next((text for name in _SUMMARIES if (text := _line(item, name, 5000))), ""), MAX_SUMMARY),
    )


def _name(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _child(element: Element, name: str) -> Element | None:
    return next((child for child in element if _name(child) == name), None)


def _line(element: Element, name: str, most: int = 300) -> str:
    """The plain text of a child, which may be HTML as text, as CDATA or as elements."""
    child = _child(element, name)
    return "" if child is None else folded(plain_text(" ".join(child.itertext())), most)


def _link(element: Element, base: str) -> str | None:
    for child in element:
        if _name(child) != "link" or child.get("rel", "alternate") != "alternate":
            continue
        if target := (child.get("href") or child.text or "").strip():
            try:
                whole = urljoin(base, target)
            except ValueError:
                return None
            # Others, such as `javascript:`, are left out.
            return folded(whole, 1000) if whole.startswith(("http://", "https://")) else None
    return None


def _author(item: Element) -> str | None:
    found = _child(item, "author")
    if found is not None and (name := _line(found, "name", 100)):
        return name
    return _line(item, "author", 100) or _line(item, "creator", 100) or None


def _date(item: Element) -> str | None:
    written = next((text for name in _DATES if (text := _line(item, name, 60))), "")
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = parse(written)
            aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return aware.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        except (ValueError, TypeError, OverflowError):
            continue
    return written or None
