"""Pieces of another server's answers, read without trust: what is no content of the protocol is passed over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trysquare.catalog.schema_parts import as_list, as_object
from trysquare.core.content import Audio, Content, Image, ResourceContents, ResourceLink, Text
from trysquare.core.prompt import PromptMessage
from trysquare.core.types import JsonObject
from trysquare.core.untrusted import cleaned_value


def contents_of(answer: JsonObject) -> Sequence[ResourceContents]:
    """What a server answered to `resources/read`."""
    return tuple(_contents(as_object(part)) for part in as_list(cleaned_value(answer.get("contents"))))


def messages_of(answer: JsonObject) -> Sequence[PromptMessage]:
    """What a server answered to `prompts/get`."""
    return tuple(_messages(as_list(cleaned_value(answer.get("messages")))))


def _messages(parts: list[Any]) -> Iterator[PromptMessage]:
    for part in map(as_object, parts):
        if (content := _block(as_object(part.get("content")))) is not None:
            yield PromptMessage(content=content, role="assistant" if part.get("role") == "assistant" else "user")


def _block(block: JsonObject) -> Content | None:
    match block.get("type"):
        case "text":
            return Text(text=_text(block, "text"))
        case "image":
            return Image(data=_text(block, "data"), mime_type=_text(block, "mimeType"))
        case "audio":
            return Audio(data=_text(block, "data"), mime_type=_text(block, "mimeType"))
        case "resource":
            return _contents(as_object(block.get("resource")))
        case "resource_link":
            return ResourceLink(
                uri=_text(block, "uri"),
                name=_text(block, "name"),
                mime_type=optional_text(block, "mimeType"),
                description=optional_text(block, "description"),
            )
        case _:
            return None


def _contents(part: JsonObject) -> ResourceContents:
    uri, mime_type, blob = _text(part, "uri"), optional_text(part, "mimeType"), part.get("blob")
    if isinstance(blob, str):
        return ResourceContents(uri=uri, mime_type=mime_type, blob=blob)
    return ResourceContents(uri=uri, mime_type=mime_type, text=_text(part, "text"))


def optional_text(part: JsonObject, name: str) -> str | None:
    """A text of an object, or None."""
    value = part.get(name)
    return value if isinstance(value, str) else None


def _text(part: JsonObject, name: str) -> str:
    return optional_text(part, name) or ""
