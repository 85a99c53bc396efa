"""Client of the Debug Adapter Protocol: framing, requests and events."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import cast

from pydantic_core import from_json, to_json

from trysquare.core.json import JsonObject, as_object
from trysquare.debug.debugger import RequestFailed
from trysquare.net.rpc import ConnectionLost, PendingRequests

_HEADER_END = b"\r\n\r\n"
_LONGEST_HEADER = 64 * 1024
MAX_MESSAGE = 256 * 1024 * 1024


class MessageError(Exception):
    """The stream violates the protocol; nothing after it can be parsed."""


class MessageReader:
    """Splits a byte stream into messages, in linear time whatever its chunks."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._length: int | None = None

    def feed(self, chunk: bytes) -> list[JsonObject]:
        """The messages that this chunk completes."""
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
                    raise MessageError(f"No header in the first {_LONGEST_HEADER} bytes.")
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
    """A message with its header in one piece: two writes would wait for an acknowledgement in between."""
    body = to_json(message, inf_nan_mode="null", fallback=str)
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _content_length(header: bytes) -> int:
    """The Content-Length of a header. Other lines are ignored: rdbg prints a greeting first."""
    for line in header.splitlines():
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            length = int(value)
            if length <= MAX_MESSAGE:
                return length
            raise MessageError(f"Message of {length} bytes exceeds the limit of {MAX_MESSAGE}.")
    raise MessageError("Header without Content-Length.")


def _parsed(body: bytes) -> JsonObject:
    try:
        message = from_json(body)
    except ValueError as error:
        raise MessageError(f"Message is not JSON: {error}") from None
    if not isinstance(message, dict):
        raise MessageError("Message is not a JSON object.")
    return cast(JsonObject, message)


_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)


class DapClient(asyncio.Protocol):
    """Client of one adapter. `on_event` is called on the event loop, in order."""

    def __init__(
        self, *, on_event: Callable[[str, JsonObject], None], on_lost: Callable[[str], None],
        on_request: Callable[[str, JsonObject], JsonObject | None] = lambda command, arguments: None,
    ) -> None:  # fmt: skip
        self._on_event = on_event
        self._on_lost = on_lost
        self._on_request = on_request
        self._reader = MessageReader()
        self._pending = PendingRequests[JsonObject]()
        self._write: Callable[[bytes], object] | None = None
        self._close: Callable[[], object] | None = None
        self._socket: socket.socket | None = None
        self.connected = asyncio.get_running_loop().create_future()

    async def request(self, command: str, arguments: JsonObject | None = None, *, timeout: float = 30.0) -> JsonObject:
        """Send a request and wait for the response body. Raises `RequestFailed` or `ConnectionLost`."""
        number, answer = self.send(command, arguments)
        return await self._pending.wait(number, answer, timeout=timeout)

    def send(self, command: str, arguments: JsonObject | None = None) -> tuple[int, asyncio.Future[JsonObject]]:
        """Send a request without waiting: some adapters answer `launch` only after `configurationDone`."""
        if self._write is None:
            raise ConnectionLost(self._pending.lost or "The debugger is not connected.")
        number, answer = self._pending.begin()
        message: JsonObject = {"seq": number, "type": "request", "command": command}
        if arguments is not None:
            message["arguments"] = arguments
        self._write(encode_message(message))
        return number, answer

    def close(self) -> None:
        if self._close is not None:
            self._close()
        self._end("The connection was closed.")

    def use_pipes(self, write: Callable[[bytes], object], close: Callable[[], object]) -> None:
        """Use pipes instead of a socket; the caller passes output to `data_received`."""
        self._write, self._close = write, close
        self._mark_connected()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        known = cast(asyncio.Transport, transport)
        if self._pending.lost is not None:
            # The wait for the connection timed out before.
            known.close()
            return
        self._write, self._close = known.write, known.close
        self._socket = known.get_extra_info("socket")
        if self._socket is not None and self._socket.family in (socket.AF_INET, socket.AF_INET6):
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            self._socket = None
        self._acknowledge()
        self._mark_connected()

    def data_received(self, data: bytes) -> None:
        self._acknowledge()
        try:
            messages = self._reader.feed(data)
        except MessageError as error:
            self._end(str(error))
            self.close()
            return
        for message in messages:
            self._dispatch(message)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end("The debugger closed the connection." if exc is None else f"The connection broke: {exc}")

    def _mark_connected(self) -> None:
        if not self.connected.done():
            self.connected.set_result(None)

    def _acknowledge(self) -> None:
        # pydevd waits for an acknowledgement between header and body, which the kernel delays by 40 ms. The option
        # resets after every read.
        if self._socket is not None and _QUICKACK is not None:
            self._socket.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)

    def _dispatch(self, message: JsonObject) -> None:
        match message.get("type"):
            case "response":
                self._answer(message)
            case "event":
                self._on_event(str(message.get("event")), as_object(message.get("body")))
            case "request":
                self._serve(message)
            case _:
                pass

    def _answer(self, message: JsonObject) -> None:
        answer = self._pending.take(message.get("request_seq"))
        if answer is None:
            return
        body = as_object(message.get("body"))
        if message.get("success"):
            answer.set_result(body)
        else:
            answer.set_exception(RequestFailed(str(message.get("command")), _error_text(message, body)))

    def _serve(self, message: JsonObject) -> None:
        command = str(message.get("command"))
        body = self._on_request(command, as_object(message.get("arguments")))
        answer: JsonObject = {
            "seq": self._pending.next_id(), "type": "response", "request_seq": message.get("seq"), "command": command,
            "success": body is not None,
        }  # fmt: skip
        if body is not None:
            answer["body"] = body
        if self._write is not None:
            self._write(encode_message(answer))

    def _end(self, reason: str) -> None:
        if self._pending.disconnect(reason):
            self._on_lost(reason)


def _error_text(message: JsonObject, body: JsonObject) -> str:
    """The adapter's message: the long form where there is one, with its variables substituted."""
    error = as_object(body.get("error"))
    text = str(error.get("format") or message.get("message") or "The debugger gave no reason.")
    for name, value in as_object(error.get("variables")).items():
        text = text.replace("{" + name + "}", str(value))
    return text
