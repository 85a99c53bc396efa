"""Relayed answers: another server's result as the answer to `tools/call`, with our label, as bytes.

Only the names at the top of the result are read. What stands below them goes from one server to the other as it is,
however long it may be.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

import msgspec
from pydantic_core import PydanticSerializationError, from_json, to_json

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.text import encodable_value

Parts: TypeAlias = dict[str, Any]
"""The names at the top of a JSON object, each with the bytes of its value."""
_BEFORE: Final = {
    name: b',"%b":' % name.encode() for name in ("content", "structuredContent", "isError", "_meta", "resultType")
}
"""What stands before the parts that nearly every result has."""
_COMPLETE: Final = b'"complete"'
_OBJECT: Final = ord("{")
_SLICE: Final = 256 * 1024
_split: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def relayed_to_wire(body: bytes, label: Mapping[str, Any], *, modern: bool) -> bytes:
    """The relayed result on one line, with `label` in its `_meta` and the fields of the protocol version.

    A body that is not a JSON object in UTF-8 raises a `ToolError`: nothing of it may get into the client's stream.
    """
    try:
        _require_utf8(body)
        # Outside of strings JSON may have line breaks wherever it likes; inside it has none.
        parts = _split(body.replace(b"\n", b" ").replace(b"\r", b" "))
        return _joined(_labelled(parts, label, modern=modern))
    except ValueError as error:
        message = f"Cannot relay the server's result: it is not a JSON object in UTF-8 ({error})."
        raise ToolError(message, code=ErrorCode.TOOL_FAILED) from None


def _labelled(parts: Parts, label: Mapping[str, Any], *, modern: bool) -> Parts:
    own = from_json(bytes(parts["_meta"])) if "_meta" in parts else None
    if meta := {**cast(JsonObject, own), **label} if isinstance(own, dict) else label:
        parts["_meta"] = _encoded(meta)
    parts.setdefault("content", b"[]")
    if modern:
        return {**parts, "resultType": _COMPLETE}
    parts.pop("resultType", None)
    # The session protocol takes only objects here; a server tells the same as text in its content.
    if memoryview(parts.get("structuredContent", b"{"))[0] != _OBJECT:
        del parts["structuredContent"]
    return parts


def _encoded(meta: Mapping[str, Any]) -> bytes:
    try:
        return to_json(meta)
    except PydanticSerializationError:
        # A name or a text of the label holds half a character.
        return to_json(encodable_value(dict(meta)))


def _joined(parts: Parts) -> bytes:
    pieces: list[Any] = []
    for name, part in parts.items():
        pieces += (_BEFORE.get(name) or b",%b:" % to_json(name), part)
    pieces[0] = b"{" + pieces[0][1:]
    pieces.append(b"}")
    return b"".join(pieces)


def _require_utf8(body: bytes) -> None:
    """Raise a `ValueError` for bytes that are no UTF-8, without making one long text of them."""
    if body.isascii():
        return
    decoder, view = codecs.getincrementaldecoder("utf-8")(), memoryview(body)
    for start in range(0, len(body), _SLICE):
        decoder.decode(view[start : start + _SLICE])
    decoder.decode(b"", final=True)
