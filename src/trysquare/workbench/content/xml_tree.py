"""XML from strangers: no entities of its own, nothing from elsewhere, bounded in depth and number.

The standard library's parser is driven directly, since only there a declaration can be refused before it takes effect.
"""

from __future__ import annotations

from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

MAX_DEPTH = 64
MAX_ELEMENTS = 50_000


class XmlRefused(Exception):
    """XML that cannot or may not be read; the text says why."""


class _Builder:
    def __init__(self) -> None:
        self._tree = TreeBuilder()
        self._depth = 0
        self._count = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._count += 1
        if self._depth > MAX_DEPTH:
            raise XmlRefused(f"elements are nested more than {MAX_DEPTH} deep")
        if self._count > MAX_ELEMENTS:
            raise XmlRefused(f"there are more than {MAX_ELEMENTS:,} elements")
        self._tree.start(name, attributes)

    def end(self, name: str) -> None:
        self._depth -= 1
        self._tree.end(name)

    def text(self, data: str) -> None:
        self._tree.data(data)

    def close(self) -> Element:
        return self._tree.close()


def parse_xml(data: bytes) -> Element:
    """The tree of a document; names are `{namespace}name`. `XmlRefused` says what is wrong."""
    builder = _Builder()
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, attributes: builder.start(_braced(name), attributes)
    parser.EndElementHandler = lambda name: builder.end(_braced(name))
    parser.CharacterDataHandler = builder.text
    parser.EntityDeclHandler = _refuse_entity
    parser.ExternalEntityRefHandler = _refuse_entity
    parser.SkippedEntityHandler = _refuse_entity
    try:
        parser.Parse(data, True)
        return builder.close()
    except expat.ExpatError as error:
        raise XmlRefused(f"{expat.ErrorString(error.code)} in line {error.lineno}") from None
    except (LookupError, ValueError) as error:
        raise XmlRefused(f"its encoding cannot be read ({str(error)[:80]})") from None


def _refuse_entity(*declared: object) -> NoReturn:
    raise XmlRefused("it declares or uses entities, which are not read")


def _braced(name: str) -> str:
    return "{" + name if "}" in name else name
