"""Reading: a file's text becomes a document, with what its front matter says."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, cast, get_args

from trysquare.files.front_matter import FrontMatterError, split_front_matter
from trysquare.guide.document import Document, DocumentId, DocumentType, Source

_TYPES = frozenset(get_args(DocumentType))
_REQUIRES = "requires-"
_TOPIC_KEY = re.compile(r"""^["']?topic["']?\s*:""", re.MULTILINE)
_KNOWN = frozenset(
    {"type", "title", "description", "instruction", "tags", "topic", "stance", "priority", "includes", "name"}
)


def read_document(
    id: DocumentId,
    text: str,
    *,
    source: Source = "file",
    path: str | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Document:
    """Make a document of a text. `extra` is metadata kept beside a stored document; the front matter wins over it."""
    parted = split_front_matter(text)
    head = {**(extra or {}), **parted.head}
    return Document(
        id=id,
        text=parted.body,
        first_line=parted.first_line,
        digest=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        source=source,
        path=path,
        type=_type(head),
        title=_text(head, "title"),
        description=_text(head, "description"),
        instruction=_text(head, "instruction"),
        tags=frozenset(_texts(head, "tags")),
        topic=_text(head, "topic"),
        stance=_text(head, "stance"),
        topic_line=_topic_line(parted.head_text) if "topic" in head else 1,
        priority=_whole(head, "priority"),
        requires={key.removeprefix(_REQUIRES): value for key, value in head.items() if key.startswith(_REQUIRES)},
        includes=tuple(_texts(head, "includes")),
        metadata={key: value for key, value in head.items() if key not in _KNOWN and not key.startswith(_REQUIRES)},
    )


def _type(head: Mapping[str, Any]) -> DocumentType:
    given = head.get("type", "agent/instruction")
    if not isinstance(given, str) or given not in _TYPES:
        raise FrontMatterError(f"`type: {str(given)[:80]}` is none of {', '.join(sorted(_TYPES))}.")
    return cast(DocumentType, given)


def _topic_line(head_text: str) -> int:
    found = _TOPIC_KEY.search(head_text)
    # The opening fence is the first line; a stored document's metadata has no line at all.
    return 1 if found is None else head_text.count("\n", 0, found.start()) + 2


def _text(head: Mapping[str, Any], key: str) -> str | None:
    value = head.get(key)
    if isinstance(value, (dict, list)):
        raise FrontMatterError(f"`{key}` must be a text.")
    return None if value is None else str(value)


def _texts(head: Mapping[str, Any], key: str) -> list[str]:
    value = head.get(key)
    if value is None:
        return []
    if isinstance(value, str):
        return [piece.strip() for piece in value.split(",") if piece.strip()]
    pieces: list[Any] = cast(list[Any], value) if isinstance(value, list) else [value]
    if any(piece is None or isinstance(piece, (dict, list)) for piece in pieces):
        raise FrontMatterError(f"`{key}` must be a list of texts.")
    return [str(piece) for piece in pieces]


def _whole(head: Mapping[str, Any], key: str) -> int:
    value = head.get(key, 0)
    if isinstance(value, bool) or not isinstance(value, int):
        raise FrontMatterError(f"`{key}` must be a whole number.")
    return value
