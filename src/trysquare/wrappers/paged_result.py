"""KeptPages: an answer that was too long, cut into pages, as it is kept behind a handle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_json

from trysquare.core.content import Content, ResourceContents, ResourceLink, Text
from trysquare.core.result import Result, dump_json, jsonable
from trysquare.core.types import JsonObject
from trysquare.wrappers.pages import Page, Path, paginate, pointer

_MARK = "trysquare.pages"


def fits(result: Result[Any], limit: int) -> bool:
    """Whether an answer's text stays within so many characters."""
    if result.relayed is not None:
        return len(result.relayed.body) <= limit
    value = result.value
    if not (result.fields or result.content or result.raw) and (value is None or isinstance(value, str)):
        return len(value or "") + len(result.message or "") + len(result.error or "") <= limit
    room = limit - len(result.message or "") - len(result.error or "") - len(result.raw or b"")
    for part in (result.value, *result.fields.values()):
        room -= _length(part)
    for piece in result.content:
        room -= len(_text_in(piece) or "")
    return room >= 0


def paged(result: Result[Any], limit: int, tool: str) -> tuple[KeptPages, Result[Any]]:
    """Cut an answer into pages; returns them and the first one with all that is not text beside it."""
    result = result.opened()
    document = _document(result)
    # The head is short, since a model seldom needs the rest; a page leaves room for the envelope around it.
    pages = paginate(document, head=max(1, limit // 8), page=max(1, limit * 3 // 4))
    main = _longest(document)
    kept = KeptPages(tool=tool, pages=pages, main=main, total=_counts(_at(document, main)), texts=_addresses(result))
    texts = kept.result(1)
    other = tuple(piece for piece in result.content if _text_in(piece) is None)
    first = replace(
        result,
        value=texts.value,
        raw=None,
        message=texts.message,
        error=pages[0].part.get("error"),
        fields={name: part for name, part in texts.fields.items() if name != "error_message"},
        content=(*texts.content, *other),
    )
    return kept, first


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptPages:
    """The pages of one answer, and what has to be told beside each."""

    tool: str
    pages: list[Page]
    main: Path
    """The part that made the answer long; the counts are about it."""
    total: JsonObject
    texts: Mapping[str, JsonObject | None]
    """For each text beside the value: the address it is embedded from, or None for plain text."""

    def result(self, number: int) -> Result[Any]:
        """A page as an answer of its own."""
        part = self.pages[number - 1].part
        fields: JsonObject = dict(part.get("fields", {}))
        if "error" in part:
            fields["error_message"] = part["error"]
        return Result(
            success=True,
            value=part.get("value"),
            message=part.get("message"),
            fields=fields,
            content=tuple(self._content(index, text) for index, text in part.get("content", {}).items()),
        )

    def told(self, number: int) -> JsonObject:
        """Which page it is, and how much of how much it shows."""
        page = self.pages[number - 1]
        told: JsonObject = {"number": number, "of": len(self.pages), "part": pointer(_in_envelope(self.main))}
        told |= {"shown": _counts(_at(page.part, self.main)), "total": self.total}
        if unfinished := pointer(_in_envelope(page.continues or ())):
            told["continues"] = unfinished
        return told

    def text(self, number: int) -> tuple[str, str]:
        """A page as a resource: the bare text where the answer is one, else JSON."""
        part = self.pages[number - 1].part
        if list(part) == ["value"] and isinstance(part["value"], str):
            return part["value"], "text/plain"
        return dump_json(part), "application/json"

    def link(self, address: str, handle: str) -> ResourceLink:
        """Where the pages can be read by clients that read resources."""
        return ResourceLink(
            uri=f"{address}{handle}",
            name="long_answer",
            description=f"The whole answer in {len(self.pages)} pages; add .2 to .{len(self.pages)} for the others.",
        )

    def to_json(self) -> JsonObject:
        """As a plain value that a store can keep."""
        pages = [{"part": page.part, "continues": page.continues and list(page.continues)} for page in self.pages]
        return {
            "kind": _MARK,
            "tool": self.tool,
            "pages": pages,
            "main": list(self.main),
            "total": self.total,
            "texts": self.texts,
        }

    @classmethod
    def from_json(cls, kept: Any) -> KeptPages | None:
        """From what was kept; None if it is something else."""
        if not isinstance(kept, dict) or cast(JsonObject, kept).get("kind") != _MARK:
            return None
        own = cast(JsonObject, kept)
        pages = [
            Page(part=page["part"], continues=None if page["continues"] is None else tuple(page["continues"]))
            for page in own["pages"]
        ]
        return cls(tool=own["tool"], pages=pages, main=tuple(own["main"]), total=own["total"], texts=own["texts"])

    def _content(self, index: str, text: str) -> Content:
        about = self.texts.get(index)
        return Text(text=text) if about is None else ResourceContents(text=text, **about)


def _document(result: Result[Any]) -> JsonObject:
    """What of an answer can be cut, under fixed names."""
    value = result.value if result.raw is None or result.value is not None else _loaded(result.raw)
    texts = {str(index): text for index, piece in enumerate(result.content) if (text := _text_in(piece)) is not None}
    document: JsonObject = {"message": result.message, "error": result.error, "value": value}
    document |= {"fields": dict(result.fields) or None, "content": texts or None}
    return {name: jsonable(part) for name, part in document.items() if part is not None}


def _loaded(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode("utf-8", "replace")


def _addresses(result: Result[Any]) -> dict[str, JsonObject | None]:
    found: dict[str, JsonObject | None] = {}
    for index, piece in enumerate(result.content):
        if isinstance(piece, ResourceContents) and piece.text is not None:
            found[str(index)] = {"uri": piece.uri, "mime_type": piece.mime_type}
    return found


def _text_in(piece: Content) -> str | None:
    return piece.text if isinstance(piece, (Text, ResourceContents)) else None


def _longest(document: JsonObject) -> Path:
    """The path of the part that makes the document long: down the objects for as long as one entry is most of them."""
    path: Path = ()
    here: Any = document
    while isinstance(here, dict) and here:
        entries = cast(JsonObject, here)
        name = max(entries, key=lambda key: _length(entries[key]))
        if path and path != ("fields",) and 2 * _length(entries[name]) < _length(entries):
            break
        path, here = (*path, name), entries[name]
    return path


def _at(document: JsonObject, path: Path) -> Any:
    here: Any = document
    for step in path:
        here = cast(JsonObject, here).get(cast(str, step)) if isinstance(here, dict) else None
    return here


def _in_envelope(path: Path) -> Path:
    """A path as a client knows it: a room's own fields stand at the top of the envelope."""
    return path[1:] if path[:1] == ("fields",) else path


def _length(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, str):
        return len(value)
    if isinstance(value, (bool, int, float)):
        return 8
    try:
        return len(to_json(value, by_alias=True, fallback=str, inf_nan_mode="strings").decode())
    except (PydanticSerializationError, ValueError):
        return len(dump_json(jsonable(value)))


def _counts(value: Any) -> JsonObject:
    """How much there is of something: characters and lines of a text, items of a list, entries of an object."""
    if isinstance(value, str):
        return {"characters": len(value), "lines": len(value.splitlines())}
    counts: JsonObject = {"characters": _length(value)}
    if isinstance(value, list):
        return {"items": len(cast(list[Any], value)), **counts}
    return {"entries": len(cast(JsonObject, value)), **counts} if isinstance(value, dict) else counts
