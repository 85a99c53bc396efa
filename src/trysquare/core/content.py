"""Pieces of an answer that are not text: pictures, sound, links to resources, embedded resources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, kw_only=True, slots=True)
class Image:
    """A picture, base64-encoded."""

    data: str
    mime_type: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Audio:
    """A sound, base64-encoded."""

    data: str
    mime_type: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ResourceContents:
    """What a resource holds: `text`, or `blob` in base64. One of the two is set."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ResourceLink:
    """Where more can be read, for clients that read resources."""

    uri: str
    name: str
    mime_type: str | None = None
    description: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """A text of its own, beside the answer's rendering."""

    text: str


Content: TypeAlias = Text | Image | Audio | ResourceContents | ResourceLink
