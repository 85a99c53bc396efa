"""Parts of an upstream result as slices of its bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

_BINARY = frozenset({"image", "audio"})
_LONGEST_ESCAPE = 12
"""Bytes of an escaped surrogate pair."""
PIECE = 1024 * 1024


class _Body(msgspec.Struct):
    content: list[msgspec.Raw] = []
    structuredContent: msgspec.Raw = msgspec.Raw()


class _Block(msgspec.Struct):
    type: str = ""
    text: msgspec.Raw = msgspec.Raw()
    data: msgspec.Raw = msgspec.Raw()
    mimeType: msgspec.Raw = msgspec.Raw()
    resource: msgspec.Raw = msgspec.Raw()


class _Resource(msgspec.Struct):
    mimeType: msgspec.Raw = msgspec.Raw()
    text: msgspec.Raw = msgspec.Raw()
    blob: msgspec.Raw = msgspec.Raw()


_BODY = msgspec.json.Decoder(_Body)
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_BLOCK = msgspec.json.Decoder(_Block)
_RESOURCE = msgspec.json.Decoder(_Resource)


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One content block. `text` and `data` are JSON strings with their quotes; empty if missing."""

    kind: str
    raw: memoryview
    text: memoryview
    data: memoryview
    """Base64 of an image, audio or binary resource."""
    mime_type: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """The parts of a result."""

    blocks: tuple[Part, ...]
    structured: memoryview
    """JSON; empty if missing."""
    whole: memoryview | None = None
    """The body, if it is not a result."""

    @property
    def readable_size(self) -> int:
        """Bytes without binary data."""
        if self.whole is not None:
            return len(self.whole)
        return len(self.structured) + sum(len(part.raw) - len(part.data) for part in self.blocks)


def split(body: bytes) -> Parts:
    try:
        read = _BODY.decode(body)
        blocks = tuple(_part(raw) for raw in read.content)
    except msgspec.DecodeError:
        return Parts(blocks=(), structured=memoryview(b""), whole=memoryview(body))
    return Parts(blocks=blocks, structured=memoryview(read.structuredContent))


def with_content(body: bytes, content: Sequence[bytes | memoryview]) -> bytes:
    fields = _FIELDS.decode(body)
    fields["content"] = msgspec.Raw(b"[" + b",".join(content) + b"]")
    return msgspec.json.encode(fields)


def texts_of(parts: Parts) -> list[memoryview]:
    """The texts of a result, as JSON strings with their quotes."""
    return [part.text for part in parts.blocks if len(part.text)]


def _part(raw: msgspec.Raw) -> Part:
    block = _BLOCK.decode(raw)
    text, data, mime_type = block.text, block.data, block.mimeType
    if block.type == "resource" and len(memoryview(block.resource)):
        resource = _RESOURCE.decode(block.resource)
        text, data, mime_type = resource.text, resource.blob, resource.mimeType
    has_data = block.type in _BINARY or block.type == "resource"
    return Part(
        kind=block.type,
        raw=memoryview(raw),
        text=_string(text),
        data=_string(data) if has_data else memoryview(b""),
        mime_type=string_of(_string(mime_type)) or None,
    )


def _string(raw: msgspec.Raw) -> memoryview:
    view = memoryview(raw)
    return view if view[:1].tobytes() == b'"' else memoryview(b"")


def string_of(token: memoryview) -> str:
    """The decoded JSON string, also with lone surrogates or invalid UTF-8."""
    return "".join(pieces_of(token))


def beginning_of(token: memoryview, size: int) -> tuple[str, bool]:
    """The decoded beginning of a JSON string, and whether it is cut."""
    inner = token[1:-1]
    text, end = _piece_from(inner, 0, size)
    return text, end < len(inner)


def pieces_of(token: memoryview, size: int = PIECE) -> Iterator[str]:
    """The decoded JSON string in pieces, so that a long one does not block other threads."""
    inner, position = token[1:-1], 0
    while position < len(inner):
        text, position = _piece_from(inner, position, size)
        yield text


def _piece_from(inner: memoryview, start: int, size: int) -> tuple[str, int]:
    """Decode part of a JSON string, and where it ends: between two characters, if possible."""
    end = min(start + max(size, _LONGEST_ESCAPE), len(inner))
    ends = range(end, max(start, end - _LONGEST_ESCAPE), -1)
    for read in (_decode, _decode_leniently):
        for cut in ends:
            try:
                return read(b'"' + inner[start:cut] + b'"'), cut
            except ValueError:
                continue
    return bytes(inner[start:end]).decode(errors="replace"), end


def _decode(token: bytes) -> str:
    return msgspec.json.decode(token, type=str)


def _decode_leniently(token: bytes) -> str:
    text = str(json.loads(token.decode(errors="replace"), strict=False))
    return text.encode(errors="replace").decode()
