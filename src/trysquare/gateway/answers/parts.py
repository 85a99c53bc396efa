"""Parts: what an answer consists of, found without reading it; every part is a slice of the answer's own bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

_BINARY = frozenset({"image", "audio"})
_LONGEST_ESCAPE = 12
"""Two halves of a character, each written as six."""
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
    uri: msgspec.Raw = msgspec.Raw()
    mimeType: msgspec.Raw = msgspec.Raw()
    text: msgspec.Raw = msgspec.Raw()
    blob: msgspec.Raw = msgspec.Raw()


_BODY = msgspec.json.Decoder(_Body)
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_BLOCK = msgspec.json.Decoder(_Block)
_RESOURCE = msgspec.json.Decoder(_Resource)


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One block of an answer. `text` and `data` are JSON strings with their quotes, and empty where there is none."""

    kind: str
    raw: memoryview
    text: memoryview
    data: memoryview
    """The base64 of a picture, a sound or a binary resource."""
    mime_type: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """An answer in its parts. One that is no result at all is a single part, which holds everything as text."""

    blocks: tuple[Part, ...]
    structured: memoryview
    """JSON; empty where there is none."""
    whole: memoryview | None = None
    """The answer itself, where it does not have the shape of a result."""

    @property
    def readable_size(self) -> int:
        """Bytes that a model would have to read."""
        if self.whole is not None:
            return len(self.whole)
        return len(self.structured) + sum(len(part.raw) - len(part.data) for part in self.blocks)


def split(body: bytes) -> Parts:
    """An answer in its parts."""
    try:
        read = _BODY.decode(body)
        blocks = tuple(_part(raw) for raw in read.content)
    except msgspec.DecodeError:
        return Parts(blocks=(), structured=memoryview(b""), whole=memoryview(body))
    return Parts(blocks=blocks, structured=memoryview(read.structuredContent))


def with_content(body: bytes, content: Sequence[bytes | memoryview]) -> bytes:
    """The same answer with other blocks; everything beside them stays as it was."""
    fields = _FIELDS.decode(body)
    fields["content"] = msgspec.Raw(b"[" + b",".join(content) + b"]")
    return msgspec.json.encode(fields)


def texts_of(parts: Parts) -> list[memoryview]:
    """The texts of an answer, as JSON strings with their quotes."""
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
    """The bytes of a JSON string, or none where it is something else."""
    view = memoryview(raw)
    return view if view[:1].tobytes() == b'"' else memoryview(b"")


def string_of(token: memoryview) -> str:
    """What a JSON string says, also where it holds halves of characters or bytes that are no UTF-8."""
    return "".join(pieces_of(token))


def beginning_of(token: memoryview, size: int) -> tuple[str, bool]:
    """What the first bytes of a JSON string say, and whether there is more of it."""
    inner = token[1:-1]
    text, end = _piece_from(inner, 0, size)
    return text, end < len(inner)


def pieces_of(token: memoryview, size: int = PIECE) -> Iterator[str]:
    """What a JSON string says, piece by piece, so that a long one is not read in one go while all others wait."""
    inner, position = token[1:-1], 0
    while position < len(inner):
        text, position = _piece_from(inner, position, size)
        yield text


def _piece_from(inner: memoryview, start: int, size: int) -> tuple[str, int]:
    """Some of a JSON string without its quotes, and where it ends: between two characters, if they are any."""
    end = min(start + max(size, _LONGEST_ESCAPE), len(inner))
    ends = range(end, max(start, end - _LONGEST_ESCAPE), -1)
    for read in (_read, _read_somehow):
        for cut in ends:
            try:
                return read(b'"' + inner[start:cut] + b'"'), cut
            except ValueError:
                continue
    return bytes(inner[start:end]).decode(errors="replace"), end


def _read(token: bytes) -> str:
    return msgspec.json.decode(token, type=str)


def _read_somehow(token: bytes) -> str:
    """What a JSON string says that holds halves of characters, or bytes that are no UTF-8."""
    text = str(json.loads(token.decode(errors="replace"), strict=False))
    return text.encode(errors="replace").decode()
