"""Feed: RSS 2.0, RSS 1.0 and Atom as one value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin
from xml.etree.ElementTree import Element

from trysquare.core.untrusted import folded
from trysquare.workbench.content.markup import plain_text
from trysquare.workbench.content.xml_tree import XmlRefused, parse_xml

MAX_ENTRIES = 200
MAX_SUMMARY = 500
_ITEMS = frozenset({"item", "entry"})
_SUMMARIES = ("description", "summary", "encoded", "content")
_DATES = ("pubDate", "published", "date", "updated", "modified", "issued")


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One piece of news."""

    title: str
    link: str | None = None
    published: str | None = None
    """ISO 8601 in UTC where the feed's date can be read, else as it stands there."""
    author: str | None = None
    summary: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Feed:
    """A feed with its newest entries, in its own order."""

    title: str
    entries: tuple[Entry, ...]
    link: str | None = None


class NoFeed(Exception):
    """Bytes that are no feed; the text says why."""


def parse_feed(data: bytes, *, base: str = "") -> Feed:
    """Read a feed of any of the three kinds. Relative links are taken from `base`."""
    if not data.strip():
        raise NoFeed("it is empty")
    try:
        root = parse_xml(data)
    except XmlRefused as error:
        raise NoFeed(f"it is no XML that can be read: {error}") from None
    kind = _name(root)
    if kind not in ("rss", "RDF", "feed"):
        raise NoFeed(f"its outermost element is <{folded(kind, 40)}>, and not <rss>, <rdf:RDF> or <feed>")
    channel = next((child for child in root if _name(child) == "channel"), root)
    items = _items(root, channel)
    entries = (_entry(item, base) for _, item in zip(range(MAX_ENTRIES), items, strict=False))
    return Feed(title=_line(channel, "title") or "(no title)", link=_link(channel, base), entries=tuple(entries))


def _items(root: Element, channel: Element) -> Iterator[Element]:
    """The entries: RSS 2.0 and Atom have them inside, RSS 1.0 beside the channel."""
    for holder in (channel,) if channel is root else (channel, root):
        yield from (child for child in holder if _name(child) in _ITEMS)


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
    """The plain text of a child. Feeds write HTML there as text, as a section or as elements."""
    child = _child(element, name)
    return "" if child is None else folded(plain_text(" ".join(child.itertext())), most)


def _link(element: Element, base: str) -> str | None:
    for child in element:
        if _name(child) != "link" or child.get("rel", "alternate") != "alternate":
            continue
        target = (child.get("href") or child.text or "").strip()
        if target:
            return _joined(base, target)
    return None


def _joined(base: str, target: str) -> str | None:
    """A link that a reader can follow; others, such as `javascript:`, are left out."""
    try:
        whole = urljoin(base, target)
    except ValueError:
        return None
    return folded(whole, 1000) if whole.startswith(("http://", "https://")) else None


def _author(item: Element) -> str | None:
    found = _child(item, "author")
    if found is not None and (name := _line(found, "name", 100)):
        return name
    return _line(item, "author", 100) or _line(item, "creator", 100) or None


def _date(item: Element) -> str | None:
    written = next((text for name in _DATES if (text := _line(item, name, 60))), None)
    if written is None:
        return None
    read = _read_date(written)
    return written if read is None else read


def _read_date(written: str) -> str | None:
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = read(written)
            aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return aware.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        except (ValueError, TypeError, OverflowError):
            continue
    return None
