"""Presentation of an upstream result: relayed as it is, or spilled to a handle."""

from __future__ import annotations

import base64
import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import msgspec
from pydantic_core import from_json, to_json

from trysquare.core.content import Audio, Content, Image, ResourceContents, ResourceLink
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode
from trysquare.core.json import JsonObject
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread
from trysquare.core.untrusted import cleaned_json, cleaned_text
from trysquare.gateway.models import ResultOrigin, UpstreamResult
from trysquare.gateway.results.parts import Part, Parts, beginning_of, split, string_of, texts_of, with_content
from trysquare.gateway.results.store import ReadOn, ResultStore, StoredResult
from trysquare.gateway.upstream.codec import MAX_CHECKED, as_utf8, require_readable

THREAD_BYTES = 256 * 1024
"""Size of a result from which it is processed in a thread."""
RESOURCE = "trysquare://gateway/results/"
"""Prefix of the URI of a spilled result, followed by its handle."""
HEAD = 2000
"""Characters of a large result that are returned at once."""
BINARY = 1024 * 1024
"""Bytes of base64 up to which an image or audio is returned as content."""
_OUTLINED_BYTES = 256 * 1024
"""Bytes at the start of a large value from which its outline is made."""
Store = Callable[..., StoredResult]
MAX_CHARACTERS = 800
_DEPTH = 6
_KEYS = 24
_ITEMS = 20
_KINDS = 3
_NAMES: dict[type, str] = {str: "str", bool: "bool", int: "int", float: "float", type(None): "null"}
"""In this order: a bool is an int as well."""


def outline(value: Any, *, is_cut: bool = False) -> str:
    """The shape of a JSON value: `{total: int, rows: [2000 x {id: int, name: str}]}`.

    `is_cut` means that only its beginning is known, so counts are lower bounds.
    """
    text = ""
    for depth in range(_DEPTH, 0, -1):
        text = _outlined(value, depth, is_cut)
        if len(text) <= MAX_CHARACTERS:
            return text
    return text[: MAX_CHARACTERS - 1] + "…"


def _outlined(value: Any, depth: int, is_cut: bool) -> str:
    """The shape of a value with so many levels. Only its last part can be cut."""
    if isinstance(value, dict):
        return _outlined_object(cast(JsonObject, value), depth, is_cut)
    if isinstance(value, list):
        return _outlined_list(cast(list[Any], value), depth, is_cut)
    return next((name for kind, name in _NAMES.items() if isinstance(value, kind)), "any")


def _outlined_object(value: JsonObject, depth: int, is_cut: bool) -> str:
    if not value or depth == 0:
        return "{…}" if value else "{}"
    names = list(value)
    cuts = [(name, is_cut and name == names[-1]) for name in names[:_KEYS]]
    parts = [f"{_name(name)}: {_outlined(value[name], depth - 1, cut)}" for name, cut in cuts]
    if len(names) > _KEYS or is_cut:
        parts.append(f"… {len(names) - _KEYS} more" if len(names) > _KEYS else "…")
    return "{" + ", ".join(parts) + "}"


def _outlined_list(items: list[Any], depth: int, is_cut: bool) -> str:
    if not items or depth == 0:
        return "[…]" if items else "[]"
    cuts = [(item, is_cut and place == len(items)) for place, item in enumerate(items[:_ITEMS], start=1)]
    kinds = list(dict.fromkeys(_outlined(item, depth - 1, cut) for item, cut in cuts))
    shapes = " | ".join(kinds[:_KINDS]) + (" | …" if len(kinds) > _KINDS else "")
    return f"[{len(items)}{'+' if is_cut else ''} x {shapes}]"


def _name(name: str) -> str:
    return name if name.isidentifier() and len(name) <= 40 else repr(name[:40])


def relay(answer: UpstreamResult, origin: ResultOrigin) -> Result[Any]:
    """The complete result with our label. Raises `MalformedResult` for one that clients cannot parse."""
    if len(answer.body) > MAX_CHECKED:
        require_readable(answer.body)
    body, cleaned = cleaned_json(answer.body)
    body = as_utf8(body)
    if origin.notes:
        body = _with_notes(body, origin.notes)
    return Result.relay(body, is_error=answer.is_error, meta=origin.label(cleaned=cleaned))


def _with_notes(body: bytes, notes: Sequence[str]) -> bytes:
    """The result with one more text, since few clients show `_meta` to the model."""
    parts = split(body)
    if parts.whole is not None:
        return body
    note = to_json({"type": "text", "text": " ".join(("Note:", *notes))})
    return with_content(body, [*(part.raw for part in parts.blocks), note])


async def present_result(
    answer: UpstreamResult,
    origin: ResultOrigin,
    *,
    limit: int,
    context: CallContext,
    results: ResultStore,
    read_call: ReadOn,
    is_typed: bool = False,
) -> Result[Any]:
    """The result of our tool: up to `limit` bytes (0 for any size) relayed, a larger one spilled.

    Of a tool that lists an output schema, the structured content stays whole: clients refuse anything else.
    """
    if 0 < limit < len(answer.body):
        principal = context.principal.subject
        spilled = await run_in_thread(
            lambda: spill(answer, origin, limit=limit, results=results, principal=principal, read_call=read_call)
        )
        if not is_typed or not spilled.success or spilled.relayed is not None:
            return spilled
        return replace(spilled, structured=await run_in_thread(lambda: _structured(answer.body)))
    if len(answer.body) > THREAD_BYTES:
        return await run_in_thread(lambda: relay(answer, origin))
    return relay(answer, origin)


def spill(
    answer: UpstreamResult, origin: ResultOrigin, *, limit: int, results: ResultStore, principal: str, read_call: ReadOn
) -> Result[Any]:
    """A large result: binary data as links, a large text as a handle with its beginning."""
    store = functools.partial(results.put, principal=principal, server=origin.server, tool=origin.tool)
    parts = split(answer.body)
    if parts.readable_size > limit:
        return _handle_result(answer, parts, origin, store, read_call)
    if any(len(part.data) > BINARY for part in parts.blocks):
        content = [part.raw if len(part.data) <= BINARY else _link(part, store) for part in parts.blocks]
        answer = answer._replace(body=with_content(answer.body, content))
    return relay(answer, origin)


def _structured(body: bytes) -> JsonObject | None:
    parts = split(body)
    return cast(JsonObject, from_json(cleaned_json(bytes(parts.structured))[0])) if len(parts.structured) else None


def _link(part: Part, store: Store) -> bytes:
    link = _stored_link(part, store)
    return msgspec.json.encode(
        {"type": "resource_link", "uri": link.uri, "name": link.name, "mimeType": link.mime_type}
    )


def _stored_link(part: Part, store: Store) -> ResourceLink:
    mime_type = part.mime_type or "application/octet-stream"
    stored = store(part.data[1:-1], mime_type=mime_type)
    return ResourceLink(
        uri=RESOURCE + stored.handle, name=f"{part.kind} {stored.handle}", mime_type=mime_type,
        description=f"{len(part.data) * 3 // 4} bytes",
    )  # fmt: skip


def _handle_result(
    answer: UpstreamResult, parts: Parts, origin: ResultOrigin, store: Store, read_call: ReadOn
) -> Result[Any]:
    stored = store(answer.body)
    head, is_cut = _head(parts)
    about: JsonObject = {"handle": stored.handle, "bytes": len(answer.body)}
    if shape := _shape(parts):
        about["shape"] = shape
    about["head"] = head
    instruction = (
        f"The result is large and stored as `{stored.handle}`. Read more with `offset` and `length`, search lines with"
        " `grep`, or query JSON with a JSONPath in `path`. To pass it to another tool, send"
        f' {{"$from": "{stored.handle}", "path": "$…"}} as the value.'
    )
    content = tuple(_content(part, store) for part in parts.blocks if len(part.data))
    following = read_call({"handle": stored.handle, "offset": len(head) if is_cut else 0})
    meta = origin.label(handle=stored.handle)
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
    """The beginning of the text, and whether it is cut."""
    texts = texts_of(parts)
    if texts:
        text, is_cut = beginning_of(texts[0], 4 * HEAD)
        is_cut = is_cut or len(texts) > 1
    else:
        raw = parts.structured if parts.whole is None else parts.whole
        text, is_cut = bytes(raw[: 4 * HEAD]).decode(errors="replace"), len(raw) > 4 * HEAD
    return cleaned_text(text[:HEAD]), is_cut or len(text) > HEAD


def _shape(parts: Parts) -> str | None:
    """The outline of a JSON result, from its beginning; None for other text."""
    if len(parts.structured):
        beginning, is_cut = bytes(parts.structured[:_OUTLINED_BYTES]), len(parts.structured) > _OUTLINED_BYTES
    else:
        texts = texts_of(parts)
        if len(texts) != 1:
            return None
        text, is_cut = beginning_of(texts[0], _OUTLINED_BYTES)
        beginning = text.encode()
    if beginning.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        value = from_json(beginning, allow_partial=is_cut)
    except ValueError:
        return None
    return cleaned_text(outline(value, is_cut=is_cut))


def _content(part: Part, store: Store) -> Content:
    """Binary data as content, or as a link if it is too large."""
    if len(part.data) > BINARY:
        return _stored_link(part, store)
    data, mime_type = string_of(part.data), part.mime_type or "application/octet-stream"
    if part.kind == "image":
        return Image(data=data, mime_type=mime_type)
    if part.kind == "audio":
        return Audio(data=data, mime_type=mime_type)
    block = cast(JsonObject, from_json(bytes(part.raw)))
    return ResourceContents(uri=str(block["resource"].get("uri", "")), mime_type=mime_type, blob=data)


def resource_contents(results: ResultStore, handle: str, *, principal: str) -> ResourceContents:
    """The contents of `trysquare://gateway/results/{handle}`."""
    stored = results.find(handle, principal=principal)
    data = stored.body.read()
    uri = RESOURCE + handle
    if stored.mime_type is not None:
        return ResourceContents(uri=uri, mime_type=stored.mime_type, blob=data.decode("ascii", errors="replace"))
    return ResourceContents(uri=uri, mime_type="application/json", blob=base64.b64encode(data).decode())
