"""The shape of a result: what a server answers to `tools/call` has to be one, or clients cannot read it.

Nearly every answer is checked in the same pass that reads its head. Only one with something rare in it (annotations,
icons, a field of a later day) is looked at with the protocol's own models.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from trysquare.core.untrusted import cleaned_text
from trysquare.gateway.answers.json_tokens import MOST_DIGITS, MOST_NESTED, as_utf8, has_long_number, is_deeper

LONG: Final = 1024 * 1024
"""Bytes above which a part is looked at only where it is passed on whole."""
_AROUND: Final = 3
"""Levels that a message has around its result, and one to spare."""
_LEVELS_READ: Final = 200
_SHOWN = 80
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeError, RecursionError)


class _Text(msgspec.Struct, tag_field="type", tag="text", forbid_unknown_fields=True):
    text: str


class _Image(msgspec.Struct, tag_field="type", tag="image", forbid_unknown_fields=True):
    data: str
    mimeType: str


class _Audio(msgspec.Struct, tag_field="type", tag="audio", forbid_unknown_fields=True):
    data: str
    mimeType: str


class CallResult(msgspec.Struct, rename={"meta": "_meta"}, forbid_unknown_fields=True):
    """A result of the usual shape. Raises `msgspec.DecodeError` for one that is rare or malformed."""

    content: list[_Text | _Image | _Audio] = []
    isError: bool = False
    resultType: str | None = None
    structuredContent: msgspec.Raw = msgspec.Raw()
    meta: msgspec.Raw = msgspec.Raw()


class MalformedResult(Exception):
    """A result that is none; the text says why."""


_usual = msgspec.json.Decoder(CallResult)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_parts = msgspec.json.Decoder(list[msgspec.Raw])


def read_call_result(body: msgspec.Raw) -> tuple[CallResult, msgspec.Raw | bytes]:
    """How a result is meant, and its bytes; empty values that the protocol has no place for are left out of those.

    Raises `MalformedResult`.
    """
    try:
        head = _usual.decode(body)
    except UnicodeError:
        return read_call_result(msgspec.Raw(as_utf8(bytes(body))))
    except _UNREADABLE:
        return _read_rare(body)
    if len(head.meta) and not bytes(head.meta).startswith(b"{"):
        return _read_rare(body)
    for part in (head.structuredContent, head.meta):
        # The rest of a usual result is flat. What is long is looked at only where it is passed on whole.
        if 0 < len(part) <= LONG:
            require_readable(bytes(part))
    return head, body


def require_readable(part: bytes) -> None:
    """Raise `MalformedResult` for JSON that is nested deeper, or has a longer number, than clients can read."""
    most = MOST_NESTED - _AROUND
    if part.count(b"[") + part.count(b"{") > most and not _is_read(part, _LEVELS_READ - most) and is_deeper(part, most):
        raise MalformedResult(f"it is nested more than {most} levels deep")
    if has_long_number(part):
        raise MalformedResult(f"it holds a number of more than {MOST_DIGITS} digits")


def _is_read(part: bytes, around: int) -> bool:
    """Whether the reader that clients are built on reads it with so many levels around it. Quicker than to count."""
    if len(part) > LONG:
        return False
    from pydantic_core import from_json

    try:
        from_json(b"[" * around + part + b"]" * around)
    except ValueError:
        return False
    return True


def _read_rare(body: msgspec.Raw) -> tuple[CallResult, bytes]:
    try:
        fields = _fields.decode(body)
    except _UNREADABLE as error:
        raise MalformedResult(f"it is not an object ({error})") from None
    present = {name: part for name, part in fields.items() if name == "structuredContent" or bytes(part) != b"null"}
    kind = _value(present, "resultType", str, "a text")
    is_error = _value(present, "isError", bool, "true or false")
    _value(present, "_meta", dict, "an object")
    if kind in (None, "complete"):
        _check_content(present.get("content"))
    if len(body) <= LONG:
        require_readable(bytes(body))
    head = CallResult(isError=bool(is_error), resultType=kind)
    return head, bytes(body) if present.keys() == fields.keys() else msgspec.json.encode(present)


def _value(fields: dict[str, msgspec.Raw], name: str, kind: type, told: str) -> Any:
    if name not in fields:
        return None
    try:
        value = msgspec.json.decode(fields[name])
    except _UNREADABLE:
        value = ...
    if type(value) is not kind:
        raise MalformedResult(f"its `{name}` is not {told}")
    return value


def _check_content(content: msgspec.Raw | None) -> None:
    if content is None:
        return
    try:
        parts = _parts.decode(content)
    except _UNREADABLE:
        raise MalformedResult("its `content` is not a list") from None
    for number, part in enumerate(parts):
        _check_block(f"content[{number}]", bytes(part))


def _check_block(place: str, block: bytes) -> None:
    import mcp_types as types
    from pydantic import BaseModel, ValidationError

    models: dict[str, type[BaseModel]] = {
        "text": types.TextContent,
        "image": types.ImageContent,
        "audio": types.AudioContent,
        "resource_link": types.ResourceLink,
        "resource": types.EmbeddedResource,
    }
    try:
        kind = _fields.decode(block).get("type")
        name = None if kind is None else msgspec.json.decode(kind, type=str)
    except _UNREADABLE:
        raise MalformedResult(f"its `{place}` is not an object with a type") from None
    if name not in models:
        told = cleaned_text(str(name)[:_SHOWN])
        raise MalformedResult(f"its `{place}` has the type `{told}`, which a result cannot hold")
    try:
        models[name].model_validate_json(block)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        path = ".".join(str(step)[:_SHOWN] for step in (place, *first["loc"]))
        raise MalformedResult(f"its `{path}` does not fit the protocol: {first['msg']}") from None
