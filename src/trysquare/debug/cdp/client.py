"""CdpClient: commands, answers and events of the Chrome DevTools Protocol, as Node's inspector speaks it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any, Protocol, cast

from pydantic_core import from_json, to_json

from trysquare.core.types import JsonObject
from trysquare.debug.cdp.websocket import WebSocketError, open_websocket
from trysquare.debug.dap.client import ConnectionLost, RequestFailed


class Channel(Protocol):
    """What carries messages to an inspector: a socket, or the inspector of the thread that started another."""

    def send_text(self, text: bytes) -> None: ...

    def close(self) -> None: ...


class CdpClient:
    """One connection to an inspector."""

    def __init__(self, *, on_event: Callable[[str, JsonObject], None], on_lost: Callable[[str], None]) -> None:
        self._on_event = on_event
        self._on_lost = on_lost
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[str, asyncio.Future[JsonObject]]] = {}
        self._channel: Channel | None = None

    async def connect(self, url: str, *, timeout: float = 10.0) -> None:
        """Connect to the address that the inspector told."""
        self._channel = await open_websocket(url, on_text=self.hear, on_lost=self.lose, timeout=timeout)

    def use(self, channel: Channel) -> None:
        """Speak through what is open already; whoever opened it calls `hear` and `lose`."""
        self._channel = channel

    async def request(self, method: str, params: JsonObject | None = None, *, timeout: float = 30.0) -> JsonObject:
        """Send a command and wait for its result."""
        if self._channel is None:
            raise ConnectionLost("The debugger is not connected.")
        number = next(self._numbers)
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (method, answer)
        try:
            self._channel.send_text(to_json({"id": number, "method": method, "params": params or {}}))
            async with asyncio.timeout(timeout):
                return await answer
        except WebSocketError as error:
            raise ConnectionLost(str(error)) from None
        finally:
            self._waiting.pop(number, None)

    def send(self, method: str, params: JsonObject) -> None:
        """Send a command whose result nobody waits for."""
        if self._channel is not None:
            self._channel.send_text(to_json({"id": next(self._numbers), "method": method, "params": params}))

    def close(self) -> None:
        """Drop the connection. A program that has ended waits for this before its process goes."""
        if self._channel is not None:
            self._channel.close()

    def hear(self, text: bytes) -> None:
        """Take a message of the inspector's."""
        message = cast(JsonObject, from_json(text))
        if "id" not in message:
            self._on_event(str(message.get("method")), _object(message.get("params")))
            return
        method, answer = self._waiting.pop(message["id"], ("", None))
        if answer is None or answer.done():
            return
        if "error" in message:
            error = _object(message["error"])
            told = " ".join(str(part) for part in (error.get("message"), error.get("data")) if part)
            answer.set_exception(RequestFailed(method, told, error))
        else:
            answer.set_result(_object(message.get("result")))

    def lose(self, reason: str) -> None:
        """The connection is gone: whoever waits is told so."""
        for _, answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ConnectionLost(reason))
        self._waiting.clear()
        self._on_lost(reason)


def _object(value: Any) -> JsonObject:
    return cast(JsonObject, value) if isinstance(value, dict) else {}
