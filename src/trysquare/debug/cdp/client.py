"""Client of Node's inspector over WebSocket, and of its worker threads."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import cast
from urllib.parse import urlsplit

from pydantic_core import from_json, to_json

from trysquare.core.concurrency import BackgroundTasks
from trysquare.core.json import JsonObject, as_object
from trysquare.debug.debugger import DEBUGGER_ERRORS, RequestFailed
from trysquare.net.rpc import ConnectionLost, PendingRequests

MAX_MESSAGE = 256 * 1024 * 1024
_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)


class CdpClient:
    def __init__(self, *, on_event: Callable[[str, JsonObject], None], on_lost: Callable[[str], None]) -> None:
        self._on_event = on_event
        self._on_lost = on_lost
        self._pending = PendingRequests[JsonObject]()
        self._send: Callable[[bytes], None] | None = None
        self._close: Callable[[], None] = lambda: None

    async def connect(self, url: str, *, timeout: float = 10.0) -> None:
        address = urlsplit(url)
        connection = WebSocket(url, on_text=self.receive, on_lost=self.disconnect)
        async with asyncio.timeout(timeout):
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: connection, address.hostname or "", address.port or 0)
            await connection.opened
        self.use(connection.send_text, connection.close)

    def use(self, send: Callable[[bytes], None], close: Callable[[], None]) -> None:
        """Use an open connection, whose owner calls `receive` and `disconnect`."""
        self._send, self._close = send, close

    async def request(self, method: str, params: JsonObject | None = None, *, timeout: float = 30.0) -> JsonObject:
        """Send a command and wait for its result. Raises `RequestFailed` or `ConnectionLost`."""
        if self._send is None:
            raise ConnectionLost("The debugger is not connected.")
        number, future = self._pending.begin()
        try:
            self._send(to_json({"id": number, "method": method, "params": params or {}}))
        except ConnectionLost:
            self._pending.take(number)
            raise
        answer = await self._pending.wait(number, future, timeout=timeout)
        if "error" not in answer:
            return as_object(answer.get("result"))
        error = as_object(answer["error"])
        text = " ".join(str(part) for part in (error.get("message"), error.get("data")) if part)
        raise RequestFailed(method, text)

    def close(self) -> None:
        """Close the connection. An ended program waits for this before its process exits."""
        self._close()

    def receive(self, text: bytes) -> None:
        message = cast(JsonObject, from_json(text))
        if "id" not in message:
            self._on_event(str(message.get("method")), as_object(message.get("params")))
        elif (future := self._pending.take(message["id"])) is not None:
            future.set_result(message)

    def disconnect(self, reason: str) -> None:
        """Reject all pending requests after the connection was lost."""
        if self._pending.disconnect(reason):
            self._on_lost(reason)


class WebSocket(asyncio.Protocol):
    """A WebSocket over the sans-I/O layer of `websockets`: sending needs no await, messages arrive in order."""

    def __init__(self, url: str, *, on_text: Callable[[bytes], None], on_lost: Callable[[str], None]) -> None:
        from websockets.client import ClientProtocol
        from websockets.uri import parse_uri

        self._protocol = ClientProtocol(parse_uri(url), max_size=MAX_MESSAGE)
        self._on_text = on_text
        self._on_lost = on_lost
        self._parts: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._lost = False
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def send_text(self, text: bytes) -> None:
        """Send one message. Raises `ConnectionLost`."""
        from websockets.exceptions import InvalidState

        try:
            self._protocol.send_text(text)
        except InvalidState:
            raise ConnectionLost("The connection is closed.") from None
        self._flush()

    def close(self) -> None:
        """Send a close frame and drop the connection."""
        if self._transport is None or self._lost:
            return
        if self.opened.done() and not self._protocol.close_expected():
            self._protocol.send_close(1000)
            self._flush()
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._protocol.send_request(self._protocol.connect())
        self._flush()

    def data_received(self, data: bytes) -> None:
        # Node may wait for an acknowledgement between two chunks, which the kernel delays.
        if self._transport is not None and _QUICKACK is not None:
            self._transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
        self._protocol.receive_data(data)
        self._receive_events()
        self._flush()
        if error := self._protocol.handshake_exc or self._protocol.parser_exc:
            self._end(f"The inspector does not speak WebSocket: {error}")
        if self._protocol.close_expected() and self._transport is not None:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end("The connection was closed." if exc is None else f"The connection broke: {exc}")

    def _receive_events(self) -> None:
        from websockets.frames import Frame, Opcode

        for event in self._protocol.events_received():
            if not isinstance(event, Frame):
                if self._protocol.handshake_exc is None:
                    self.opened.set_result(None)
            elif event.opcode in (Opcode.TEXT, Opcode.CONT):
                self._parts.append(bytes(event.data))
                if event.fin:
                    text = b"".join(self._parts)
                    self._parts.clear()
                    self._on_text(text)

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if self._transport is not None and data:
                self._transport.write(data)

    def _end(self, reason: str) -> None:
        if self._lost:
            return
        self._lost = True
        if not self.opened.done():
            self.opened.set_exception(ConnectionLost(reason))
            self.opened.exception()
        self._on_lost(reason)


class Workers:
    """The connections to the worker threads of one program, by the inspector's session ids."""

    def __init__(self, client: CdpClient) -> None:
        self._client = client
        self._threads: dict[str, CdpClient] = {}
        self._background = BackgroundTasks()

    async def watch(self) -> None:
        """Make every new thread wait for its debugger."""
        with suppress(RequestFailed):  # the inspector of a thread does not report the threads that it starts
            await self._client.request("NodeWorker.enable", {"waitForDebuggerOnStart": True})

    def open(self, name: str, client: CdpClient) -> None:
        self._threads[name] = client
        client.use(partial(self._send, name), partial(self._remove, name))

    def receive(self, params: JsonObject) -> None:
        client = self._threads.get(str(params.get("sessionId")))
        if client is not None:
            client.receive(str(params.get("message")).encode())

    def on_end(self, params: JsonObject) -> None:
        self._remove(str(params.get("sessionId")), "The thread has ended.")

    def disconnect(self, reason: str) -> None:
        """Disconnect all clients after the connection to the program was lost."""
        for name in list(self._threads):
            self._remove(name, reason)

    def _remove(self, name: str, reason: str | None = None) -> None:
        """Remove a thread; with a reason, disconnect its client."""
        client = self._threads.pop(name, None)
        if client is not None and reason is not None:
            client.disconnect(reason)

    def _send(self, name: str, text: bytes) -> None:
        if name not in self._threads:
            raise ConnectionLost("The thread has ended.")
        self._background.start(self._pass_on(name, text))

    async def _pass_on(self, name: str, text: bytes) -> None:
        try:
            message = {"sessionId": name, "message": text.decode()}
            await self._client.request("NodeWorker.sendMessageToWorker", message)
        except DEBUGGER_ERRORS as error:
            self._remove(name, str(error) or "timeout")
