"""Frames: JSON-RPC messages of a server, taken apart without reading what they carry."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from trysquare.core.types import JsonObject
from trysquare.gateway.answers.json_tokens import as_utf8

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
PARSE_ERROR: Final = -32700
UNSUPPORTED_VERSION: Final = -32022

LARGE: Final = 1024 * 1024
"""Bytes above which a message is taken apart in a thread, so that nobody else has to wait."""
_NOTHING: Final = msgspec.Raw(b"")
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeError, RecursionError)


class Frame(msgspec.Struct, frozen=True):
    """One message: an answer (`result` or `error`), a request (`method` and `id`) or a notification (`method`).

    What it carries stays a slice of the bytes that came in.
    """

    id: int | float | str | None = None
    method: str | None = None
    params: msgspec.Raw = _NOTHING
    result: msgspec.Raw = _NOTHING
    error: msgspec.Raw = _NOTHING


class ErrorBody(msgspec.Struct, frozen=True):
    """Why a server refused a request."""

    code: int = INTERNAL_ERROR
    message: str = ""
    data: Any = None


class ResultHead(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a result that says how the rest is meant."""

    is_error: bool | None = None
    result_type: str | None = None


class Progress(msgspec.Struct, frozen=True, rename="camel"):
    """How far a call is."""

    progress_token: int | str | None = None
    progress: float = 0.0
    total: float | None = None
    message: str | None = None


_frame = msgspec.json.Decoder(Frame)
_batch = msgspec.json.Decoder(list[msgspec.Raw])
_head = msgspec.json.Decoder(ResultHead)
_progress = msgspec.json.Decoder(Progress)
_object = msgspec.json.Decoder(dict[str, Any])
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_error = msgspec.json.Decoder(ErrorBody)


def decode_frames(message: bytes | bytearray) -> list[Frame]:
    """The frames of a message, which may be several in the version of 2025-03-26. Raises `NotAFrame`."""
    try:
        if message.startswith(b"["):
            return [_frame.decode(part) for part in _batch.decode(message)]
        return [_frame.decode(message)]
    except _UNREADABLE as error:
        raise NotAFrame(str(error)) from None


def open_result(result: msgspec.Raw) -> tuple[ResultHead, bytes]:
    """How a result is meant, and its bytes in one line. Raises `NotAFrame` for one that is no object."""
    try:
        head = _head.decode(result)
    except _UNREADABLE as error:
        raise NotAFrame(str(error)) from None
    # A newline can only stand between the parts of a JSON text, and would cut a line of the protocol in two.
    return head, as_utf8(bytes(result).replace(b"\n", b" "))


def decode_progress(params: msgspec.Raw) -> Progress | None:
    """What a progress notification says, or None if it says nothing that can be read."""
    try:
        return _progress.decode(params)
    except _UNREADABLE:
        return None


def decode_object(raw: msgspec.Raw | bytes) -> JsonObject:
    """A part of a message as values. What is missing is an empty object; raises `NotAFrame` for anything else."""
    try:
        return _object.decode(raw) if len(raw) else {}
    except _UNREADABLE as error:
        raise NotAFrame(str(error)) from None


def decode_fields(raw: msgspec.Raw | bytes) -> dict[str, msgspec.Raw]:
    """The names at the top of an object, their values unread. Raises `NotAFrame`."""
    try:
        return _fields.decode(raw)
    except _UNREADABLE as error:
        raise NotAFrame(str(error)) from None


def decode_parts(raw: msgspec.Raw) -> list[msgspec.Raw]:
    """The parts of a list, unread; nothing where it is no list."""
    try:
        return _batch.decode(raw)
    except _UNREADABLE:
        return []


def decode_text(raw: msgspec.Raw) -> str:
    """A text; empty where it is none."""
    try:
        return msgspec.json.decode(raw, type=str) if len(raw) else ""
    except _UNREADABLE:
        return ""


def decode_error(raw: msgspec.Raw) -> ErrorBody:
    """Why a request was refused; whatever cannot be read says at least that it was."""
    try:
        return _error.decode(raw)
    except _UNREADABLE:
        return ErrorBody(message="The server answered with an error that cannot be read.")


def encode(value: Any) -> bytes:
    """A value as JSON."""
    return msgspec.json.encode(value)


def request(request_id: int, method: str, params: bytes) -> bytes:
    """A request whose parameters are JSON already."""
    return b'{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}' % (request_id, method.encode(), params)


def notification(method: str, params: JsonObject) -> bytes:
    """A notification."""
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


def answer(request_id: int | float | str, result: JsonObject) -> bytes:
    """An answer to a request of the server."""
    return encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def refusal(request_id: int | float | str, code: int, message: str) -> bytes:
    """A request of the server, refused."""
    return encode({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}})


class NotAFrame(Exception):
    """Bytes that are no message of the protocol."""
