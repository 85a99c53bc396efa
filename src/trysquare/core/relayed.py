"""Relayed: the whole answer of another MCP server, as the bytes that came from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from pydantic_core import from_json

from trysquare.core.content import Audio, Content, Image, ResourceContents, ResourceLink
from trysquare.core.types import JsonObject


class Relayed(NamedTuple):
    """Another server's result of `tools/call`: a JSON object that goes to an MCP client without being read."""

    body: bytes
    is_error: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadAnswer:
    """What stands in a relayed answer, in our own parts."""

    text: str | None
    structured: Any = None
    content: tuple[Content, ...] = ()

    @property
    def value(self) -> Any:
        """The structured content, or the text of a server that has none."""
        return self.text if self.structured is None else self.structured

    @property
    def message(self) -> str | None:
        """What the text says beside the value. Most servers only repeat the one in the other."""
        if self.structured is None or self.text is None:
            return None
        try:
            return None if from_json(self.text) == self.structured else self.text
        except ValueError:
            return self.text


def read_relayed(body: bytes) -> ReadAnswer:
    """Read a relayed answer. The other server may have sent anything; what is no JSON object counts as its text."""
    try:
        wire = from_json(body)
    except ValueError:
        wire = None
    if not isinstance(wire, dict):
        return ReadAnswer(text=body.decode(errors="replace"))
    answer = cast(JsonObject, wire)
    blocks = _blocks(answer.get("content"))
    texts = [_text(block, "text") for block in blocks if block.get("type") == "text"]
    return ReadAnswer(
        text="\n".join(texts) if texts else None,
        structured=answer.get("structuredContent"),
        content=tuple(piece for block in blocks if (piece := _piece(block)) is not None),
    )


def _blocks(content: Any) -> list[JsonObject]:
    if not isinstance(content, list):
        return []
    return [cast(JsonObject, block) for block in cast(list[Any], content) if isinstance(block, dict)]


def _piece(block: Mapping[str, Any]) -> Content | None:
    """A block that is no text as our piece of content; None for a kind that the protocol does not know."""
    match block.get("type"):
        case "image":
            return Image(data=_text(block, "data"), mime_type=_text(block, "mimeType"))
        case "audio":
            return Audio(data=_text(block, "data"), mime_type=_text(block, "mimeType"))
        case "resource_link":
            return ResourceLink(
                uri=_text(block, "uri"), name=_text(block, "name"), mime_type=_text(block, "mimeType") or None
            )
        case "resource":
            return _embedded(block.get("resource"))
        case _:
            return None


def _embedded(resource: Any) -> ResourceContents | None:
    if not isinstance(resource, dict):
        return None
    held = cast(JsonObject, resource)
    uri, mime_type = _text(held, "uri"), _text(held, "mimeType") or None
    if "blob" in held:
        return ResourceContents(uri=uri, mime_type=mime_type, blob=_text(held, "blob"))
    return ResourceContents(uri=uri, mime_type=mime_type, text=_text(held, "text"))


def _text(block: Mapping[str, Any], name: str) -> str:
    value = block.get(name)
    return value if isinstance(value, str) else ""
