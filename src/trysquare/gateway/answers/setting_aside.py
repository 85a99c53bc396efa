"""Setting aside: a large answer becomes a handle with its size, its shape and its beginning.

Pictures and sounds are not read as text, so that they pass on as content up to a bound of their own; larger ones
become links to resources that the client can fetch.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Callable
from typing import Any, cast

import msgspec
from pydantic_core import from_json

from trysquare.core.content import Audio, Content, Image, ResourceContents, ResourceLink
from trysquare.core.errors import ErrorCode
from trysquare.core.result import Result
from trysquare.core.types import JsonObject
from trysquare.core.untrusted import cleaned_text
from trysquare.gateway.answers.answer import Answer
from trysquare.gateway.answers.large import KeptResult, LargeResults, ReadOn
from trysquare.gateway.answers.origin import Origin
from trysquare.gateway.answers.outline import outline
from trysquare.gateway.answers.parts import Part, Parts, beginning_of, split, string_of, texts_of, with_content
from trysquare.gateway.answers.passing_on import passed_on

RESOURCE = "trysquare://gateway/results/"
"""Where a binary piece that was kept aside can be fetched: followed by its handle."""
HEAD = 2000
"""Characters of a large result that are shown at once."""
BINARY = 1024 * 1024
"""Bytes of base64 up to which a picture or a sound passes on as content."""
_LOOK = 256 * 1024
"""Bytes from the beginning of a large value of which the outline is made."""

Keep = Callable[..., KeptResult]


def set_aside(
    answer: Answer, origin: Origin, *, limit: int, results: LargeResults, principal: str, read_call: ReadOn
) -> Result[Any]:
    """A large answer as what the model gets of it."""
    keep = functools.partial(results.keep, principal=principal, server=origin.server, tool=origin.tool)
    parts = split(answer.body)
    is_text_large = parts.readable_size > limit
    if not is_text_large and not any(len(part.data) > BINARY for part in parts.blocks):
        return passed_on(answer, origin)
    if not is_text_large:
        return passed_on(_with_links(answer, parts, keep), origin)
    return _handle_result(answer, parts, origin, keep, read_call)


def _with_links(answer: Answer, parts: Parts, keep: Keep) -> Answer:
    """The same answer with links in place of its large binary pieces."""
    content = [part.raw if len(part.data) <= BINARY else _link(part, keep) for part in parts.blocks]
    return answer._replace(body=with_content(answer.body, content))


def _link(part: Part, keep: Keep) -> bytes:
    link = _kept_link(part, keep)
    return msgspec.json.encode(
        {"type": "resource_link", "uri": link.uri, "name": link.name, "mimeType": link.mime_type}
    )


def _kept_link(part: Part, keep: Keep) -> ResourceLink:
    mime_type = part.mime_type or "application/octet-stream"
    kept = keep(part.data[1:-1], mime_type=mime_type)
    return ResourceLink(
        uri=RESOURCE + kept.handle, name=f"{part.kind} {kept.handle}", mime_type=mime_type,
        description=f"{len(part.data) * 3 // 4} bytes, kept aside",
    )  # fmt: skip


def _handle_result(answer: Answer, parts: Parts, origin: Origin, keep: Keep, read_call: ReadOn) -> Result[Any]:
    kept = keep(answer.body)
    head, is_cut = _head(parts)
    about: JsonObject = {"handle": kept.handle, "bytes": len(answer.body)}
    if shape := _shape(parts):
        about["shape"] = shape
    about["head"] = head
    instruction = (
        f"The result is large and kept as `{kept.handle}`. Read on with `offset` and `length`, find lines with `grep`,"
        " or query JSON with a JSONPath as `path`. As an input of another tool, write"
        f' {{"$from": "{kept.handle}", "path": "$…"}} in place of the value.'
    )
    content = tuple(_piece(part, keep) for part in parts.blocks if len(part.data))
    following = read_call({"handle": kept.handle, "offset": len(head) if is_cut else 0})
    meta = origin.label(handle=kept.handle)
    if answer.is_error:
        return Result(
            success=False, error=head, error_type="tool_failed", code=ErrorCode.TOOL_FAILED, instruction=instruction,
            next=following, fields=about, content=content, meta=meta,
        )  # fmt: skip
    return Result(
        success=True, value=about, instruction=instruction, next=following, content=content, meta=meta,
        warnings=origin.notes,
    )  # fmt: skip


def _head(parts: Parts) -> tuple[str, bool]:
    """The beginning of what a model would read, and whether there is more."""
    texts = texts_of(parts)
    if texts:
        text, is_cut = beginning_of(texts[0], 4 * HEAD)
        is_cut = is_cut or len(texts) > 1
    else:
        raw = parts.structured if parts.whole is None else parts.whole
        text, is_cut = bytes(raw[: 4 * HEAD]).decode(errors="replace"), len(raw) > 4 * HEAD
    return cleaned_text(text[:HEAD]), is_cut or len(text) > HEAD


def _shape(parts: Parts) -> str | None:
    """The outline of the JSON in an answer, made of its beginning; None where there is no JSON."""
    if len(parts.structured):
        beginning, is_cut = bytes(parts.structured[:_LOOK]), len(parts.structured) > _LOOK
    else:
        texts = texts_of(parts)
        if len(texts) != 1:
            return None
        text, is_cut = beginning_of(texts[0], _LOOK)
        beginning = text.encode()
    if beginning.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        value = from_json(beginning, allow_partial=is_cut)
    except ValueError:
        return None
    return cleaned_text(outline(value, is_cut=is_cut))


def _piece(part: Part, keep: Keep) -> Content:
    """A binary piece of an answer as content, or as a link where it is too large for that."""
    if len(part.data) > BINARY:
        return _kept_link(part, keep)
    data, mime_type = string_of(part.data), part.mime_type or "application/octet-stream"
    if part.kind == "image":
        return Image(data=data, mime_type=mime_type)
    if part.kind == "audio":
        return Audio(data=data, mime_type=mime_type)
    block = cast(JsonObject, from_json(bytes(part.raw)))
    return ResourceContents(uri=str(block["resource"].get("uri", "")), mime_type=mime_type, blob=data)


def resource_contents(results: LargeResults, handle: str, *, principal: str) -> ResourceContents:
    """What a client gets that fetches `trysquare://gateway/results/{handle}`."""
    kept = results.find(handle, principal=principal)
    data = kept.body.read()
    uri = RESOURCE + handle
    if kept.mime_type is not None:
        return ResourceContents(uri=uri, mime_type=kept.mime_type, blob=data.decode("ascii", errors="replace"))
    return ResourceContents(uri=uri, mime_type="application/json", blob=base64.b64encode(data).decode())
