"""Frames: one line of JSON as one message of the protocol, and back.

An invalid message gets an error response: a client that waits must get an answer.
"""

from __future__ import annotations

import json
from typing import Any, Final, cast

from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from trysquare.core.json import JsonObject
from trysquare.core.text import encodable_value, is_encodable

RAW: Final = "trysquare.raw"
"""The one name in a result that stands for the whole of it: its value is the JSON to send, as bytes on one line."""


class FrameError(Exception):
    """An invalid line, with the error response."""

    def __init__(self, code: int, message: str, request_id: str | int | None = None) -> None:
        super().__init__(message)
        self.answer: Final = JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message))


def decode_frame(line: bytes) -> JSONRPCMessage:
    """The message that a line holds, or a `FrameError`."""
    frame = _object(_parsed(line))
    try:
        if "method" not in frame:
            return _answer(frame)
        if "id" not in frame:
            return _notification(frame)
        if _usable_id(frame) is None:
            raise FrameError(INVALID_REQUEST, "The `id` of a request must be a text or a whole number.")
        return JSONRPCRequest.model_validate(frame)
    except ValidationError as error:
        raise FrameError(INVALID_REQUEST, _format_error(error), _usable_id(frame)) from None


def encode_frame(message: JSONRPCMessage) -> bytes:
    """A message as one line of JSON."""
    if isinstance(message, JSONRPCResponse):
        return encode_result(message.id, message.result)
    return _encoded(_as_object(message))


def encode_result(request_id: str | int, result: JsonObject) -> bytes:
    """The answer to a request as one line of JSON."""
    if isinstance(raw := result.get(RAW), bytes):
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (to_json(request_id), raw)
    return _encoded({"jsonrpc": "2.0", "id": request_id, "result": result})


def _encoded(frame: JsonObject) -> bytes:
    try:
        return to_json(frame, inf_nan_mode="null", fallback=str) + b"\n"
    except (PydanticSerializationError, UnicodeError):
        # Half characters have no UTF-8. Answers of tools hold none, but a line of progress may.
        return to_json(encodable_value(frame), inf_nan_mode="null", fallback=str) + b"\n"


def _parsed(line: bytes) -> Any:
    try:
        return from_json(line)
    except ValueError:
        # The slower reader takes half characters and deeper nesting, and says what is wrong where it is.
        return _parsed_slowly(line)


def _parsed_slowly(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise FrameError(PARSE_ERROR, f"The line is not UTF-8: byte {error.start} cannot be read.") from None
    except RecursionError:
        raise FrameError(PARSE_ERROR, "The JSON is nested too deeply.") from None
    except json.JSONDecodeError as error:
        raise FrameError(PARSE_ERROR, f"The line is not JSON: {error.msg} at character {error.pos}.") from None
    except ValueError:
        raise FrameError(PARSE_ERROR, "The line holds a number that is too long.") from None


def _object(value: Any) -> JsonObject:
    if isinstance(value, dict):
        return cast(JsonObject, value)
    what = "a batch, which the protocol does not have" if isinstance(value, list) else type(value).__name__
    raise FrameError(INVALID_REQUEST, f"A message is one JSON object; this is {what}.")


def _notification(frame: JsonObject) -> JSONRPCMessage:
    notification = JSONRPCNotification.model_validate(frame)
    if not notification.method.startswith("notifications/"):
        raise FrameError(INVALID_REQUEST, "A request needs an `id`; only notifications go without one.")
    return notification


def _answer(frame: JsonObject) -> JSONRPCMessage:
    if "result" in frame:
        return JSONRPCResponse.model_validate(frame)
    if "error" in frame:
        return JSONRPCError.model_validate(frame)
    raise FrameError(INVALID_REQUEST, "A message needs a `method`, a `result` or an `error`.", _usable_id(frame))


def _usable_id(frame: JsonObject) -> str | int | None:
    """The id, if an answer can carry it: half a character could not be sent back."""
    given = frame.get("id")
    if isinstance(given, str):
        return given if is_encodable(given) else None
    return given if isinstance(given, int) and not isinstance(given, bool) else None


def _format_error(error: ValidationError) -> str:
    """The fields that are wrong, without what was in them."""
    fields = dict.fromkeys(str(detail["loc"][0]) for detail in error.errors(include_input=False) if detail["loc"])
    return f"Invalid JSON-RPC 2.0 message: check {', '.join(f'`{field}`' for field in fields)}."


def _as_object(message: JSONRPCError | JSONRPCNotification | JSONRPCRequest) -> JsonObject:
    match message:
        case JSONRPCError():
            error = message.error.model_dump(mode="json", exclude_none=True)
            return {"jsonrpc": "2.0", "id": message.id, "error": error}
        case JSONRPCNotification():
            head: JsonObject = {"jsonrpc": "2.0", "method": message.method}
            return head if message.params is None else {**head, "params": message.params}
        case JSONRPCRequest():
            head = {"jsonrpc": "2.0", "id": message.id, "method": message.method}
            return head if message.params is None else {**head, "params": message.params}
