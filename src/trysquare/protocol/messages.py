"""JSON-RPC 2.0 messages: read strictly in one pass, written as one line of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from trysquare.core.json import JsonObject
from trysquare.core.text import encodable_value, is_encodable

T = TypeVar("T")

RequestId: TypeAlias = int | str
AnyId: TypeAlias = float | str
"""An id that goes back as it came: some programs write 1 as 1.0."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
"""Of the versions with a handshake; since 2026-07-28 it is the code of invalid parameters."""
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022
URL_REQUIRED: Final = -32042
"""Of a server that rejects a call until the user has opened a page."""

HTTP_STATUS: Final = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
"""Status of an HTTP response in 2026-07-28 by the code of its error; 200 for any other."""

UNREADABLE: Final = (msgspec.DecodeError, UnicodeError, RecursionError, ValueError)
"""What decoding may raise. A number with too many digits is a `ValueError`, an error of msgspec's is not."""
MAX_BATCH: Final = 1000
"""Messages of one batch: each costs a task, and fifty bytes are enough for one."""
_NOTHING: Final = Raw(b"")
_NULL: Final = Raw(b"null")
_OBJECT_OR_NULL: Final = frozenset(b"{n")
"""First bytes of an object and of null."""


class RpcError(Exception):
    """An error response: raised by the side that answers, and again by the side that asked."""

    def __init__(self, code: int, message: str, data: Any = None, *, request_id: RequestId | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.request_id = request_id
        """The id of a message that is invalid as a whole, where it has a usable one."""


class Message(Struct, frozen=True):
    """Any message: a request (`method` and `id`), a notification (`method`), or a response (`result` or `error`).

    The parts are slices of the received bytes: they were skipped, not checked, until they are decoded themselves.
    """

    jsonrpc: Literal["2.0"]
    id: int | str | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw = _NOTHING
    result: Raw = _NOTHING
    error: Raw = _NOTHING


class _ErrorBody(Struct):
    code: int
    message: str


_decode_message = msgspec.json.Decoder(Message).decode
_decode_error = msgspec.json.Decoder(_ErrorBody).decode
_decode_batch = msgspec.json.Decoder(list[Raw]).decode
_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_any = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def decode(data: bytes | bytearray | Raw) -> Message:
    """The message in the bytes. Raises `RpcError` with the code to answer with."""
    try:
        _require_utf8(data)
        message = _decode_message(data)
    except UNREADABLE:
        message = _decode_slowly(bytes(data))
    if message.method is UNSET:
        _require_response(message)
    elif message.id is None:
        raise RpcError(INVALID_REQUEST, "The `id` of a request must be a string or an integer.")
    elif message.id is UNSET and not message.method.startswith("notifications/"):
        raise RpcError(INVALID_REQUEST, "A request needs an `id`; only notifications go without one.")
    if len(message.params) and memoryview(message.params)[0] not in _OBJECT_OR_NULL:
        raise _invalid("The `params` must be an object.", message)
    return message


def _require_utf8(data: bytes | bytearray | Raw) -> None:
    """Raise `UnicodeError` for bytes that are not UTF-8: parts of a message that are skipped are not checked."""
    text = bytes(data) if type(data) is Raw else data
    if not text.isascii():
        text.decode()


def _require_response(message: Message) -> None:
    if message.id is UNSET or not (len(message.result) or len(message.error)):
        raise _invalid("A message needs a `method`, or an `id` with a `result` or an `error`.", message)
    if len(message.result) and memoryview(message.result)[0] not in _OBJECT_OR_NULL:
        raise _invalid("The `result` must be an object.", message)
    if len(message.error):
        try:
            _decode_error(message.error)
        except UNREADABLE:
            raise _invalid("The `error` needs a `code` and a `message`.", message) from None


def _invalid(text: str, message: Message) -> RpcError:
    is_request = message.method is not UNSET and message.id is not UNSET
    return RpcError(INVALID_REQUEST, text, request_id=message.id if is_request and message.id is not UNSET else None)


def decode_batch(data: bytes | bytearray) -> list[Raw] | None:
    """The messages of a batch, undecoded; None for bytes that are not a JSON array. Raises `RpcError`."""
    if data.lstrip()[:1] != b"[":
        return None
    try:
        batch = _decode_batch(data)
    except UNREADABLE as error:
        raise RpcError(PARSE_ERROR, f"Parse error: {error}") from None
    if not 0 < len(batch) <= MAX_BATCH:
        raise RpcError(INVALID_REQUEST, f"A batch has from 1 to {MAX_BATCH} messages; this one has {len(batch)}.")
    return batch


def decode_each(batch: list[Raw], take: Callable[[Message], None]) -> tuple[list[Message], list[RpcError]]:
    """The requests of a batch, and the errors of those that are not messages; `take` gets the other messages."""
    requests: list[Message] = []
    errors: list[RpcError] = []
    for raw in batch:
        try:
            message = decode(raw)
        except RpcError as error:
            errors.append(error)
            continue
        if message.method is UNSET or message.id is UNSET:
            take(message)
        else:
            requests.append(message)
    return requests, errors


def _decode_slowly(data: bytes) -> Message:
    """Find out what is wrong: not JSON, not a message, or only lone surrogates, which are replaced."""
    try:
        value = json.loads(data.decode())
    except RecursionError:
        raise RpcError(PARSE_ERROR, "Parse error: the JSON is nested too deeply.") from None
    except (json.JSONDecodeError, UnicodeError) as problem:
        raise RpcError(PARSE_ERROR, f"Parse error: {problem}") from None
    except ValueError:
        raise RpcError(PARSE_ERROR, "Parse error: a number has too many digits.") from None
    if not isinstance(value, dict):
        kind = "a batch, which this protocol version does not have" if isinstance(value, list) else type(value).__name__
        raise RpcError(INVALID_REQUEST, f"A message is one JSON object; got {kind}.")
    if isinstance(given := cast(JsonObject, value).get("id"), str) and not is_encodable(given):
        raise RpcError(INVALID_REQUEST, "The `id` contains a lone surrogate, so that no response could have it.")
    try:
        return _decode_message(_encode(encodable_value(value)))
    except (*UNREADABLE, OverflowError, TypeError) as problem:
        text = f"Invalid JSON-RPC 2.0 message: {problem}"
        raise RpcError(INVALID_REQUEST, text, request_id=_usable_id(cast(JsonObject, value))) from None


def _usable_id(message: JsonObject) -> RequestId | None:
    """The id, if a response can have it: one with a lone surrogate or a huge one could not be sent back."""
    given = message.get("id")
    if isinstance(given, str):
        return given if is_encodable(given) else None
    return given if isinstance(given, int) and not isinstance(given, bool) and given.bit_length() < 64 else None


def decode_part(decoder: Callable[[bytes | Raw], T], raw: Raw) -> T:
    """A part of a message by its type, an absent one as `{}`. Raises `RpcError` that says what does not fit where.

    Lone surrogates are replaced, since a client that cuts an emoji in half still deserves an answer.
    """
    try:
        return decoder(raw if len(raw) and raw != _NULL else b"{}")
    except UNREADABLE as error:
        problem = error
    try:
        return decoder(_encode(encodable_value(json.loads(bytes(raw)))))
    except (*UNREADABLE, OverflowError, TypeError):
        raise RpcError(INVALID_PARAMS, f"Invalid params: {explained(problem, 'params')}.") from None


def explained(problem: Exception, root: str) -> str:
    """What does not fit where, without a full stop; the place is `params.name` in place of msgspec's `$.name`."""
    return str(problem).replace("`$", f"`{root}").rstrip(".")


def decode_any(raw: bytes | Raw) -> Any:
    """A part of a message, or None if it is absent or cannot be read."""
    try:
        return _decode_any(raw) if len(raw) else None
    except UNREADABLE:
        return None


def member(raw: bytes | Raw, name: str) -> Any:
    """One member of a part that should be an object; None if there is none. What stands beside it is not read."""
    try:
        return decode_any(_decode_members(raw).get(name, _NOTHING)) if len(raw) else None
    except UNREADABLE:
        return None


def encode(value: Any) -> bytes:
    """A JSON value on one line. What UTF-8 or 64 bits cannot hold goes a slower way."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, OverflowError, TypeError, msgspec.EncodeError):
        from pydantic_core import to_json

        return to_json(encodable_value(msgspec.to_builtins(value, enc_hook=str)), inf_nan_mode="null", fallback=str)


def encode_result(request_id: AnyId, result: Any) -> bytes:
    """A response. A result that is bytes is JSON already, and goes out as it is."""
    if type(result) is bytes:
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_encode(request_id), result)
    return encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def encode_error(error: RpcError, request_id: AnyId | None) -> bytes:
    body: JsonObject = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return encode({"jsonrpc": "2.0", "id": request_id, "error": body})


def encode_request(request_id: RequestId, method: str, params: Any) -> bytes:
    """A request. Parameters that are bytes are JSON already, and go out as they are."""
    if type(params) is bytes:
        return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (_encode(request_id), _encode(method), params)
    return encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def encode_notification(method: str, params: Any = None) -> bytes:
    head: JsonObject = {"jsonrpc": "2.0", "method": method}
    return encode(head if params is None else {**head, "params": params})


def error_of(message: Message) -> RpcError:
    """The error of a response."""
    return read_error(decode_any(message.error))


def read_error(value: Any) -> RpcError:
    """A decoded error, with a fallback for each member that does not fit the protocol."""
    if not isinstance(value, dict):
        return RpcError(INTERNAL_ERROR, "The response has neither a result nor a valid error.")
    body = cast(JsonObject, value)
    code, message = body.get("code"), body.get("message")
    text = message if isinstance(message, str) else ""
    return RpcError(code if type(code) is int else INTERNAL_ERROR, text, body.get("data"))
