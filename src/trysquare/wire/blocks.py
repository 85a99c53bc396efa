"""Content blocks: our pieces of an answer as MCP's."""

from __future__ import annotations

from trysquare.core.content import Audio, Content, Image, ResourceContents, ResourceLink, Text
from trysquare.core.types import JsonObject


def block_to_wire(content: Content) -> JsonObject:
    """One piece of an answer as an MCP content block."""
    match content:
        case Text():
            return {"type": "text", "text": content.text}
        case Image():
            return {"type": "image", "data": content.data, "mimeType": content.mime_type}
        case Audio():
            return {"type": "audio", "data": content.data, "mimeType": content.mime_type}
        case ResourceLink():
            return {"type": "resource_link", **_link(content)}
        case ResourceContents():
            return {"type": "resource", "resource": contents_to_wire(content)}


def contents_to_wire(contents: ResourceContents) -> JsonObject:
    """What a resource holds, as MCP tells it: text, or base64 bytes."""
    wire: JsonObject = {"uri": contents.uri}
    if contents.mime_type is not None:
        wire["mimeType"] = contents.mime_type
    if contents.blob is not None:
        return {**wire, "blob": contents.blob}
    return {**wire, "text": contents.text or ""}


def _link(link: ResourceLink) -> JsonObject:
    optional = {"mimeType": link.mime_type, "description": link.description}
    return {"uri": link.uri, "name": link.name, **{key: value for key, value in optional.items() if value is not None}}
