"""Messages of the Debug Adapter Protocol: bytes in, objects out, and back."""

from __future__ import annotations

from typing import cast

from pydantic_core import from_json, to_json

from trysquare.core.types import JsonObject

_HEADER_END = b"\r\n\r\n"
_LONGEST_HEADER = 64 * 1024
MAX_MESSAGE = 256 * 1024 * 1024


class MessageError(Exception):
    """What came is not this protocol. Nothing after it can be read, since lengths have lost their meaning."""


class MessageReader:
    """Cuts a stream of bytes into messages. Linear in what comes, however it is chopped."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._length: int | None = None

    def feed(self, chunk: bytes) -> list[JsonObject]:
        """The messages that are complete now."""
        self._buffer += chunk
        messages: list[JsonObject] = []
        while (body := self._next_body()) is not None:
            messages.append(_parsed(body))
        return messages

    def _next_body(self) -> bytes | None:
        if self._length is None:
            end = self._buffer.find(_HEADER_END)
            if end < 0:
                if len(self._buffer) > _LONGEST_HEADER:
                    raise MessageError(f"There is no header in the first {_LONGEST_HEADER} bytes.")
                return None
            self._length = _content_length(bytes(self._buffer[:end]))
            del self._buffer[: end + len(_HEADER_END)]
        if len(self._buffer) < self._length:
            return None
        body = bytes(self._buffer[: self._length])
        del self._buffer[: self._length]
        self._length = None
        return body


def encode_message(message: JsonObject) -> bytes:
    """A message with its header, as one piece: two would wait for each other's acknowledgement."""
    body = to_json(message, inf_nan_mode="null", fallback=str)
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _content_length(header: bytes) -> int:
    """The length that a header tells. Lines before it are passed over: rdbg greets a person before it knows us."""
    for line in header.splitlines():
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            length = int(value)
            if length <= MAX_MESSAGE:
                return length
            raise MessageError(f"A message of {length} bytes is more than the {MAX_MESSAGE} that are read.")
    raise MessageError("A header has no Content-Length.")


def _parsed(body: bytes) -> JsonObject:
    try:
        message = from_json(body)
    except ValueError as error:
        raise MessageError(f"A message is no JSON: {error}") from None
    if not isinstance(message, dict):
        raise MessageError("A message is no JSON object.")
    return cast(JsonObject, message)
