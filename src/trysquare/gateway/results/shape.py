"""Validation of an upstream `tools/call` result."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from trysquare.core.text import truncate
from trysquare.protocol.content import ContentBlock
from trysquare.protocol.messages import UNREADABLE, explained

MAX_NESTING: Final = 180
"""Maximum levels of a message. The JSON parsers of clients fail at about 200."""
TOKEN: Final = re.compile(
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[{]+|[\]}]+|[-+]?[A-Za-z_]\w*|-?[0-9][\w.+-]*', re.DOTALL
)
"""A string (the last one may be cut off), a run of brackets, a word, or a number."""
OPENING: Final = frozenset(b"[{")
CLOSING: Final = frozenset(b"]}")
MAX_DIGITS: Final = 4300
"""Maximum digits of a number, as in Python."""
_DIGITS: Final = frozenset(b"-0123456789")
_ALL_ZERO: Final = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER: Final = b"0" * MAX_DIGITS


def as_utf8(data: bytes) -> bytes:
    """The same bytes, with U+FFFD for invalid UTF-8."""
    if data.isascii():
        return data
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode(errors="replace").encode()
    return data


def is_deeper(data: bytes, most: int) -> bool:
    """Whether JSON has more than so many levels."""
    if data.count(b"[") + data.count(b"{") <= most:
        return False
    depth = 0
    for token in TOKEN.finditer(data):
        first = data[token.start()]
        if first in OPENING:
            depth += token.end() - token.start()
            if depth > most:
                return True
        elif first in CLOSING:
            depth -= token.end() - token.start()
    return False


def has_long_number(data: bytes) -> bool:
    """Whether JSON has a number with more digits than clients can parse."""
    if len(data) <= MAX_DIGITS or _LONG_NUMBER not in data.translate(_ALL_ZERO):
        return False
    return any(
        data[token.start()] in _DIGITS and token.end() - token.start() > MAX_DIGITS for token in TOKEN.finditer(data)
    )


MAX_CHECKED: Final = 1024 * 1024
"""Maximum bytes of a part that is checked at once; a larger one is checked when it is relayed."""
_AROUND: Final = 3
"""Levels of a message around its result, and one to spare."""
_LEVELS_READ: Final = 200
_SHOWN = 200


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
_block = msgspec.json.Decoder(ContentBlock)


def read_call_result(body: msgspec.Raw) -> tuple[CallResult, msgspec.Raw | bytes]:
    """The head of a result, and its bytes without null members. Raises `MalformedResult`.

    Nearly every result is validated by the decoder. One with rare members (annotations, icons) is validated block by
    block.
    """
    try:
        head = _usual.decode(body)
    except UnicodeError:
        return read_call_result(msgspec.Raw(as_utf8(bytes(body))))
    except UNREADABLE:
        return _read_rare(body)
    if len(head.meta) and not bytes(head.meta).startswith(b"{"):
        return _read_rare(body)
    for part in (head.structuredContent, head.meta):
        # The rest of a usual result is flat.
        if 0 < len(part) <= MAX_CHECKED:
            require_readable(bytes(part))
    return head, body


def require_readable(part: bytes) -> None:
    """Raise `MalformedResult` for JSON with deeper nesting or longer numbers than clients can parse."""
    most = MAX_NESTING - _AROUND
    if (
        part.count(b"[") + part.count(b"{") > most
        and not _is_parsed(part, _LEVELS_READ - most)
        and is_deeper(part, most)
    ):
        raise MalformedResult(f"it is nested more than {most} levels deep")
    if has_long_number(part):
        raise MalformedResult(f"it has a number of more than {MAX_DIGITS} digits")


def _is_parsed(part: bytes, around: int) -> bool:
    """Whether the parser of clients accepts it with so many levels around it. Faster than counting."""
    if len(part) > MAX_CHECKED:
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
    except UNREADABLE as error:
        raise MalformedResult(f"it is not an object ({error})") from None
    present = {name: part for name, part in fields.items() if name == "structuredContent" or bytes(part) != b"null"}
    kind = _value(present, "resultType", str, "a string")
    is_error = _value(present, "isError", bool, "a boolean")
    _value(present, "_meta", dict, "an object")
    if kind in (None, "complete") and "content" in present:
        try:
            parts = _parts.decode(present["content"])
        except UNREADABLE:
            raise MalformedResult("its `content` is not a list") from None
        for number, part in enumerate(parts):
            _check_block(f"content[{number}]", bytes(part))
    if len(body) <= MAX_CHECKED:
        require_readable(bytes(body))
    head = CallResult(isError=bool(is_error), resultType=kind)
    return head, bytes(body) if present.keys() == fields.keys() else msgspec.json.encode(present)


def _value(fields: dict[str, msgspec.Raw], name: str, kind: type, expected: str) -> Any:
    if name not in fields:
        return None
    try:
        value = msgspec.json.decode(fields[name])
    except UNREADABLE:
        value = ...
    if type(value) is not kind:
        raise MalformedResult(f"its `{name}` is not {expected}")
    return value


def _check_block(path: str, block: bytes) -> None:
    try:
        _block.decode(block)
    except UNREADABLE as error:
        raise MalformedResult(f"its content is invalid: {truncate(explained(error, path), _SHOWN)}") from None
