"""DapClient: requests, answers and events of one debug adapter, over a socket or over pipes."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Callable
from typing import Any, cast

from trysquare.core.types import JsonObject
from trysquare.debug.dap.messages import MessageError, MessageReader, encode_message

OnEvent = Callable[[str, JsonObject], None]
OnRequest = Callable[[str, JsonObject], JsonObject | None]
OnLost = Callable[[str], None]

_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)


class RequestFailed(Exception):
    """The adapter refused a request. `message` is the adapter's own text."""

    def __init__(self, command: str, message: str, body: JsonObject) -> None:
        super().__init__(message)
        self.command, self.message, self.body = command, message, body


class ConnectionLost(Exception):
    """The adapter is gone, so no answer will come."""


class DapClient(asyncio.Protocol):
    """One side of the protocol. `on_event` is called on the event loop, in the order in which events came."""

    def __init__(self, *, on_event: OnEvent, on_lost: OnLost, on_request: OnRequest | None = None) -> None:
        self._on_event = on_event
        self._on_lost = on_lost
        self._on_request = on_request
        self._reader = MessageReader()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[JsonObject]] = {}
        self._write: Callable[[bytes], object] | None = None
        self._close: Callable[[], object] | None = None
        self._socket: socket.socket | None = None
        self._lost: str | None = None
        self.connected = asyncio.get_running_loop().create_future()

    async def request(self, command: str, arguments: JsonObject | None = None, *, timeout: float = 30.0) -> JsonObject:
        """Ask, and wait for the answer's body. A refusal is a `RequestFailed`; a lost adapter a `ConnectionLost`."""
        number, answer = self.send(command, arguments)
        try:
            async with asyncio.timeout(timeout):
                return await answer
        finally:
            self._waiting.pop(number, None)

    def send(self, command: str, arguments: JsonObject | None = None) -> tuple[int, asyncio.Future[JsonObject]]:
        """Ask without waiting: some adapters answer `launch` only after `configurationDone`."""
        if self._write is None or self._lost is not None:
            raise ConnectionLost(self._lost or "The debugger is not connected.")
        number = next(self._numbers)
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        message: JsonObject = {"seq": number, "type": "request", "command": command}
        if arguments is not None:
            message["arguments"] = arguments
        self._write(encode_message(message))
        return number, answer

    def close(self) -> None:
        """Drop the connection."""
        if self._close is not None:
            self._close()
        self._end("The connection was closed.")

    def use_pipes(self, write: Callable[[bytes], object], close: Callable[[], object]) -> None:
        """Speak over something else than a socket; what comes is given to `data_received`."""
        self._write, self._close = write, close
        self._tell_connected()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        known = cast(asyncio.Transport, transport)
        if self._lost is not None:
            # It was given up between the knock at our door and this moment.
            known.close()
            return
        self._write, self._close = known.write, known.close
        self._socket = known.get_extra_info("socket")
        if self._socket is not None and self._socket.family in (socket.AF_INET, socket.AF_INET6):
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            self._socket = None
        self._acknowledge()
        self._tell_connected()

    def data_received(self, data: bytes) -> None:
        self._acknowledge()
        try:
            messages = self._reader.feed(data)
        except MessageError as error:
            self._end(str(error))
            self.close()
            return
        for message in messages:
            self._take(message)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end("The debugger closed the connection." if exc is None else f"The connection broke: {exc}")

    def _tell_connected(self) -> None:
        if not self.connected.done():
            self.connected.set_result(None)

    def _acknowledge(self) -> None:
        # pydevd sends a header and its body apart and waits in between for an acknowledgement, which the system would
        # hold back for 40 ms. The option is forgotten after every read, so it is set again each time.
        if self._socket is not None and _QUICKACK is not None:
            self._socket.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)

    def _take(self, message: JsonObject) -> None:
        match message.get("type"):
            case "response":
                self._answer(message)
            case "event":
                self._on_event(str(message.get("event")), _object(message.get("body")))
            case "request":
                self._serve(message)
            case _:
                return

    def _answer(self, message: JsonObject) -> None:
        waiting = self._waiting.pop(message.get("request_seq", -1), None)
        if waiting is None or waiting.done():
            return
        body = _object(message.get("body"))
        if message.get("success"):
            waiting.set_result(body)
        else:
            waiting.set_exception(RequestFailed(str(message.get("command")), _told(message, body), body))

    def _serve(self, message: JsonObject) -> None:
        command = str(message.get("command"))
        body = self._on_request(command, _object(message.get("arguments"))) if self._on_request else None
        answer: JsonObject = {
            "seq": next(self._numbers),
            "type": "response",
            "request_seq": message.get("seq"),
            "command": command,
            "success": body is not None,
        }
        if body is not None:
            answer["body"] = body
        if self._write is not None:
            self._write(encode_message(answer))

    def _end(self, reason: str) -> None:
        if self._lost is not None:
            return
        self._lost = reason
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionLost(reason))
        self._waiting.clear()
        self._on_lost(reason)


def _told(message: JsonObject, body: JsonObject) -> str:
    """The adapter's own words: the long form where there is one, with its variables filled in."""
    error = _object(body.get("error"))
    text = str(error.get("format") or message.get("message") or "The debugger gave no reason.")
    for name, value in _object(error.get("variables")).items():
        text = text.replace("{" + name + "}", str(value))
    return text


def _object(value: Any) -> JsonObject:
    return cast(JsonObject, value) if isinstance(value, dict) else {}
