"""What a client gets back: definitions, results of calls, prompts and resources, as plain values."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from trysquare.core.content import Audio, Content, Image, ResourceContents, ResourceLink, Text
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.core.result import read_block
from trysquare.core.untrusted import cleaned_text
from trysquare.protocol.messages import RpcError

RESULT_KEY = "trysquare/result"
"""Key of `_meta` with what our own servers say beside the value: code, instruction, next, warnings."""

_CODES = frozenset(ErrorCode)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolResult:
    """The result of a call, of any server. What only our own servers send is None or empty for others."""

    text: str
    """All text of the result."""
    data: Any = None
    """The structured value: an object as it is; a list or a plain value without the object around it."""
    content: tuple[Content, ...] = ()
    """Every content block in order: text, images, audio, embedded resources and links."""
    is_error: bool = False
    code: str | None = None
    """The error's code, such as `VALIDATION_ERROR`."""
    instruction: str | None = None
    """What to do with the result, for a model."""
    next: JsonObject | None = None
    """The exact call that follows: the corrected one, the next page."""
    warnings: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The whole `_meta` of the result."""

    def raise_error(self) -> None:
        """Raise the error of a failed call as a `ToolError`."""
        if self.is_error:
            raise ToolError(
                self.text or "The call failed.",
                code=ErrorCode(self.code) if self.code in _CODES else ErrorCode.TOOL_FAILED,
                instruction=self.instruction,
                next=self.next,
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptDefinition:
    """A prompt as its server lists it."""

    name: str
    title: str | None = None
    description: str = ""
    arguments: tuple[JsonObject, ...] = ()
    """Each with `name`, and `description` and `required` where the server gives them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ResourceDefinition:
    """A resource or a template as its server lists it."""

    uri: str
    """The address; of a template, with its parts in braces."""
    name: str
    title: str | None = None
    description: str = ""
    mime_type: str | None = None
    is_template: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptResult:
    """The messages of a prompt: the role of each, and its content."""

    messages: tuple[tuple[str, Content], ...]
    description: str = ""

    @property
    def text(self) -> str:
        """All text of the messages."""
        return "\n\n".join(content.text for _, content in self.messages if isinstance(content, Text))


@dataclass(frozen=True, kw_only=True, slots=True)
class ResourceResult:
    """What a resource holds, in one or more parts."""

    contents: tuple[ResourceContents, ...]

    @property
    def text(self) -> str:
        """All text parts."""
        return "\n".join(part.text for part in self.contents if part.text is not None)

    @property
    def data(self) -> bytes:
        """The bytes of all parts."""
        return b"".join(contents_bytes(part) for part in self.contents)


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """Values that complete an argument."""

    values: tuple[str, ...]
    total: int | None = None
    has_more: bool = False


def content_bytes(content: Content) -> bytes:
    """The bytes of a content block: of a text in UTF-8, of a link none."""
    match content:
        case Text():
            return content.text.encode()
        case Image() | Audio():
            return base64.b64decode(content.data)
        case ResourceContents():
            return contents_bytes(content)
        case ResourceLink():
            return b""


def contents_bytes(part: ResourceContents) -> bytes:
    """The bytes of one part of a resource."""
    return base64.b64decode(part.blob) if part.blob is not None else (part.text or "").encode()


def tool_result(wire: JsonObject) -> ToolResult:
    """The result of `tools/call`."""
    content = tuple(piece for block in as_list(wire.get("content")) if (piece := content_of(block)) is not None)
    meta = as_object(wire.get("_meta"))
    about = as_object(meta.get(RESULT_KEY))
    return ToolResult(
        text="\n".join(piece.text for piece in content if isinstance(piece, Text)),
        data=_value(wire.get("structuredContent"), about),
        content=content,
        is_error=wire.get("isError") is True,
        code=_text(about.get("code")),
        instruction=_text(about.get("instruction")),
        next=cast(JsonObject, about["next"]) if isinstance(about.get("next"), dict) else None,
        warnings=tuple(str(warning) for warning in as_list(about.get("warnings"))),
        meta=meta,
    )


def failed(error: ToolError) -> ToolResult:
    """A call that was refused as a whole, as of an unknown tool, as the result of a failed one."""
    return ToolResult(
        text=error.message,
        content=(Text(text=error.message),),
        is_error=True,
        code=error.code.value,
        instruction=error.instruction,
        next=error.next,
    )


def refusal(error: RpcError) -> ToolError:
    """A protocol error, with what our own servers say in its data."""
    data = as_object(error.data)
    code = data.get("code")
    following = data.get("next")
    return ToolError(
        cleaned_text(error.message or "The server gave no reason."),
        code=ErrorCode(code) if code in _CODES else ErrorCode.UPSTREAM_REFUSED,
        instruction=_text(data.get("instruction")),
        next=cast(JsonObject, following) if isinstance(following, dict) else None,
        fields={"upstream_code": error.code},
    )


def _value(structured: Any, about: JsonObject) -> Any:
    """The value itself: an object can be the wrapping of one that is none, and can repeat what `_meta` says."""
    if not isinstance(structured, dict):
        return structured
    own = {
        name: part for name, part in cast(JsonObject, structured).items() if name not in about or about[name] != part
    }
    return own["result"] if own.keys() == {"result"} else own


def content_of(block: Any) -> Content | None:
    """A content block of the protocol; None for one of an unknown type."""
    wire = as_object(block)
    return Text(text=_text(wire.get("text")) or "") if wire.get("type") == "text" else read_block(wire)


def prompt_definition(wire: JsonObject) -> PromptDefinition:
    return PromptDefinition(
        name=str(wire.get("name", "")),
        title=_text(wire.get("title")),
        description=_text(wire.get("description")) or "",
        arguments=tuple(as_object(argument) for argument in as_list(wire.get("arguments"))),
    )


def resource_definition(wire: JsonObject) -> ResourceDefinition:
    template = _text(wire.get("uriTemplate"))
    return ResourceDefinition(
        uri=template or _text(wire.get("uri")) or "",
        name=_text(wire.get("name")) or "",
        title=_text(wire.get("title")),
        description=_text(wire.get("description")) or "",
        mime_type=_text(wire.get("mimeType")),
        is_template=template is not None,
    )


def prompt_result(wire: JsonObject) -> PromptResult:
    messages = [as_object(message) for message in as_list(wire.get("messages"))]
    read = ((str(message.get("role", "user")), content_of(message.get("content"))) for message in messages)
    return PromptResult(
        messages=tuple((role, content) for role, content in read if content is not None),
        description=_text(wire.get("description")) or "",
    )


def resource_result(wire: JsonObject) -> ResourceResult:
    parts = (content_of({"type": "resource", "resource": part}) for part in as_list(wire.get("contents")))
    return ResourceResult(contents=tuple(part for part in parts if isinstance(part, ResourceContents)))


def completion(wire: JsonObject) -> Completion:
    found = as_object(wire.get("completion"))
    total = found.get("total")
    return Completion(
        values=tuple(str(value) for value in as_list(found.get("values"))),
        total=total if isinstance(total, int) else None,
        has_more=found.get("hasMore") is True,
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
