"""Content blocks: what results and messages to a model consist of."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct, field

from trysquare.core.json import JsonObject

Role: TypeAlias = Literal["user", "assistant"]
Priority: TypeAlias = Annotated[float, Meta(ge=0.0, le=1.0)]


class Annotations(Struct, rename="camel"):
    """For whom a block is, and how important it is."""

    audience: list[Role] | None = None
    priority: Priority | None = None
    last_modified: str | None = None


class Block(Struct, rename="camel", tag_field="type", kw_only=True):
    """Any content block. Unknown members are ignored: later revisions may add some."""

    annotations: Annotations | None = None
    meta: JsonObject | None = field(name="_meta", default=None)


class TextBlock(Block, tag="text"):
    text: str


class ImageBlock(Block, tag="image"):
    data: str
    mime_type: str


class AudioBlock(Block, tag="audio"):
    data: str
    mime_type: str


class Icon(Struct, rename="camel"):
    src: str
    mime_type: str | None = None
    sizes: list[str] | None = None
    theme: Literal["light", "dark"] | None = None


class ResourceLinkBlock(Block, tag="resource_link"):
    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    icons: list[Icon] | None = None


class ResourceContents(Struct, rename="camel", kw_only=True):
    """The contents of a resource, as text or as base64."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None
    meta: JsonObject | None = field(name="_meta", default=None)

    def __post_init__(self) -> None:
        if self.text is None and self.blob is None:
            raise ValueError("Object missing required field `text` or `blob`")


class ResourceBlock(Block, tag="resource"):
    resource: ResourceContents


ContentBlock: TypeAlias = TextBlock | ImageBlock | AudioBlock | ResourceLinkBlock | ResourceBlock
"""A part of a tool's result or of a prompt's message."""


class ToolUseBlock(Block, tag="tool_use"):
    id: str
    name: str
    input: JsonObject


class ToolResultBlock(Block, tag="tool_result"):
    tool_use_id: str
    content: list[ContentBlock] | None = None
    structured_content: Any = None
    is_error: bool | None = None


SamplingBlock: TypeAlias = TextBlock | ImageBlock | AudioBlock | ToolUseBlock | ToolResultBlock
"""A part of a message of a sampling request."""


class SamplingMessage(Struct, kw_only=True):
    role: Role
    content: SamplingBlock | list[SamplingBlock]
    meta: JsonObject | None = field(name="_meta", default=None)
