"""Lenient, zero-copy reader of what servers send: frames, results of calls, and the repair of broken messages.

`trysquare.protocol.messages` reads strictly, as a server should; a gateway reads whatever still has one meaning.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from trysquare.core.json import JsonObject
from trysquare.core.text import truncate
from trysquare.protocol.content import ContentBlock
from trysquare.protocol.messages import UNREADABLE, AnyId, explained
from trysquare.protocol.methods import ProgressParams

T = TypeVar("T")

LARGE: Final = 1024 * 1024
"""Size of a message from which it is parsed in a thread."""
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
_NUMBER: Final = frozenset(b"-0123456789")
_ALL_ZERO: Final = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER: Final = b"0" * MAX_DIGITS
_NOTHING: Final = msgspec.Raw(b"")


class Frame(msgspec.Struct, frozen=True):
    """One message: response, request or notification. Its parts are slices of the received bytes."""

    id: int | AnyId | None = None
    method: str | None = None
    params: msgspec.Raw = _NOTHING
    result: msgspec.Raw = _NOTHING
    error: msgspec.Raw = _NOTHING


class ResultHead(msgspec.Struct, frozen=True, rename="camel"):
    """The members of a result that decide how it is handled."""

    is_error: bool | None = None
    result_type: str | None = None


_frame = msgspec.json.Decoder(Frame)
_batch = msgspec.json.Decoder(list[msgspec.Raw])
_head = msgspec.json.Decoder(ResultHead)
_progress = msgspec.json.Decoder(ProgressParams)
_object = msgspec.json.Decoder(dict[str, Any])
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


def decode_frames(message: bytes | bytearray) -> list[Frame]:
    """The frames of a message, several for a batch of 2025-03-26. Raises `InvalidFrame`."""
    if message.startswith(b"["):
        return [_decode(_frame, part) for part in _decode(_batch, message)]
    return [_decode(_frame, message)]


def _decode(decoder: msgspec.json.Decoder[T], raw: msgspec.Raw | bytes | bytearray) -> T:
    try:
        return decoder.decode(raw)
    except UNREADABLE as error:
        raise InvalidFrame(str(error)) from None


def open_result(result: msgspec.Raw) -> tuple[ResultHead, bytes]:
    """The head of a result, and its bytes in one line. Raises `InvalidFrame` unless it is an object."""
    head = _decode(_head, result)
    # A newline can only be between JSON tokens, and would split a line of the protocol.
    return head, as_utf8(bytes(result).replace(b"\n", b" "))


def decode_progress(params: msgspec.Raw) -> ProgressParams | None:
    """The parameters of a progress notification, or None if they are invalid."""
    try:
        return _progress.decode(params)
    except UNREADABLE:
        return None


def decode_object(raw: msgspec.Raw | bytes) -> JsonObject:
    """An object; empty bytes are an empty one. Raises `InvalidFrame`."""
    return _decode(_object, raw) if len(raw) else {}


def decode_fields(raw: msgspec.Raw | bytes) -> dict[str, msgspec.Raw]:
    """The members of an object, with undecoded values. Raises `InvalidFrame`."""
    return _decode(_fields, raw)


def decode_parts(raw: msgspec.Raw) -> list[msgspec.Raw]:
    """The undecoded items of a list; none for anything else."""
    try:
        return _batch.decode(raw)
    except UNREADABLE:
        return []


def decode_text(raw: msgspec.Raw) -> str:
    """A string; empty for anything else."""
    try:
        return msgspec.json.decode(raw, type=str) if len(raw) else ""
    except UNREADABLE:
        return ""


class InvalidFrame(Exception):
    """Bytes that are not a JSON-RPC message."""


MARK: Final = b'"unreadable-%s"' % secrets.token_hex(16).encode()
"""Replaces what could not be parsed; unguessable."""

_STRING = ord('"')
_DIGITS = frozenset(b"0123456789")
_WORDS = frozenset({b"true", b"false", b"null"})
_COLON = re.compile(rb"\s*:\s*")
_ID = re.compile(rb'(-?[0-9]{1,18})(?:\.0+)?\s*[,}]|"([^"\\]{0,256})"')
_CONTROL = re.compile(rb"[\x00-\x1f]")
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_MAX_NAME = 64


class Trace(NamedTuple):
    """The id and member names of a message that cannot be parsed."""

    id: int | str | None
    names: frozenset[str]

    @property
    def is_answer(self) -> bool:
        return "method" not in self.names and bool(self.names & {"result", "error"})


class Salvaged(NamedTuple):
    """The frames or traces of a broken message, and its flaw. Frames without a flaw are complete."""

    frames: list[Frame]
    traces: list[Trace]
    flaw: str


def salvage(message: bytes | bytearray) -> Salvaged:
    """Repair a message that the strict decoder rejected.

    Lone surrogates become U+FFFD. Invalid tokens such as `NaN` and too deep nesting become a mark, and the message is
    flawed. One pass without recursion, since the sender may be hostile.
    """
    data = as_utf8(bytes(message))
    repair = _Repair(data)
    try:
        return Salvaged(decode_frames(repair.text), [], repair.flaw)
    except InvalidFrame as error:
        return Salvaged([], list(_traces(data)), repair.flaw or f"it is not JSON ({error})")


class _Repair:
    """Rewrites a message with valid strings, and with the mark for invalid tokens and too deep nesting."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._pieces: list[bytes] = []
        self._copied = 0
        self._depth = 0
        self.flaw = ""
        for token in TOKEN.finditer(data):
            self._process(*token.span())

    @property
    def text(self) -> bytes:
        return b"".join((*self._pieces, self._data[self._copied :])) if self._pieces else self._data

    def _process(self, start: int, end: int) -> None:
        first = self._data[start]
        if first in OPENING:
            self._open(start, end)
        elif first in CLOSING:
            self._close(start, end)
        elif self._depth > MAX_NESTING:
            return
        elif first == _STRING:
            if (text := _valid_string(self._data[start:end])) is not None:
                self._put(start, end, text)
        elif not _is_plain(word := self._data[start:end]):
            self._mark(start, end, f"`{word[:20].decode(errors='replace')}` is not JSON")

    def _open(self, start: int, end: int) -> None:
        before, self._depth = self._depth, self._depth + end - start
        if before <= MAX_NESTING < self._depth:
            self._mark(start + MAX_NESTING - before, end, f"it is nested more than {MAX_NESTING} levels deep")

    def _close(self, start: int, end: int) -> None:
        before, self._depth = self._depth, self._depth - (end - start)
        if before > MAX_NESTING >= self._depth:
            self._copied = start + before - MAX_NESTING

    def _mark(self, start: int, end: int, flaw: str) -> None:
        self.flaw = self.flaw or flaw
        self._put(start, end, MARK)

    def _put(self, start: int, end: int, instead: bytes) -> None:
        self._pieces.extend((self._data[self._copied : start], instead))
        self._copied = end


def _is_plain(token: bytes) -> bool:
    return token in _WORDS or token[0] in _DIGITS or (token[:1] == b"-" and token[1:2].isdigit())


def _valid_string(token: bytes) -> bytes | None:
    """A string without lone surrogates and with escaped control characters; None if it is valid."""
    fixed = token
    if b"\\u" in token:
        fixed = _ESCAPE.sub(lambda escape: b"\\ufffd" if escape[1] else escape[0], fixed)
    if _CONTROL.search(fixed):
        fixed = _CONTROL.sub(lambda control: b"\\u%04x" % ord(control[0]), fixed)
    return None if fixed == token else fixed


def _traces(data: bytes) -> Iterator[Trace]:
    """The trace of a message, or of each item of a batch."""
    top = 2 if data.lstrip()[:1] == b"[" else 1
    depth, found, names = 0, None, set[str]()
    for token in TOKEN.finditer(data):
        first = data[token.start()]
        if first in OPENING:
            depth += token.end() - token.start()
        elif first in CLOSING:
            before, depth = depth, depth - (token.end() - token.start())
            if before >= top > depth and names:
                yield Trace(found, frozenset(names))
                found, names = None, set[str]()
        elif first == _STRING and depth == top and (colon := _COLON.match(data, token.end())):
            name = token.group()[1:-1][:_MAX_NAME].decode(errors="replace")
            names.add(name)
            if name == "id" and (value := _ID.match(data, colon.end())):
                found = int(value[1]) if value[1] is not None else value[2].decode(errors="replace")
    if names:
        yield Trace(found, frozenset(names))


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
        data[token.start()] in _NUMBER and token.end() - token.start() > MAX_DIGITS for token in TOKEN.finditer(data)
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
            parts = _batch.decode(present["content"])
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
