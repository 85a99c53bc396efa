"""Workers: the threads of a Node program, each with an inspector of its own that is spoken to through the program's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from trysquare.core.types import JsonObject
from trysquare.debug.cdp.client import CdpClient
from trysquare.debug.dap.client import ConnectionLost, RequestFailed


class Workers:
    """The channels to the threads of one program, by the inspector's names for them."""

    def __init__(self, client: CdpClient) -> None:
        self._client = client
        self._threads: dict[str, CdpClient] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def watch(self) -> None:
        """Have every thread that is started wait until it is let go."""
        try:
            await self._client.request("NodeWorker.enable", {"waitForDebuggerOnStart": True})
        except RequestFailed:
            # A thread's own inspector does not know of the threads that it starts.
            return

    def open(self, name: str, client: CdpClient) -> None:
        """Let a client speak to a thread."""
        self._threads[name] = client
        client.use(_Channel(lambda text: self._send(name, text), lambda: self._threads.pop(name, None)))

    def hear(self, params: JsonObject) -> None:
        """Take what a thread's inspector says."""
        client = self._threads.get(str(params.get("sessionId")))
        if client is not None:
            client.hear(str(params.get("message")).encode())

    def hear_end(self, params: JsonObject) -> None:
        """A thread has ended."""
        client = self._threads.pop(str(params.get("sessionId")), None)
        if client is not None:
            client.lose("The thread has ended.")

    def lose(self, reason: str) -> None:
        """The program's own connection is gone, and with it those to its threads."""
        while self._threads:
            self._threads.popitem()[1].lose(reason)

    def _send(self, name: str, text: bytes) -> None:
        if name not in self._threads:
            raise ConnectionLost("The thread has ended.")
        task = asyncio.ensure_future(self._sent(name, text))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _sent(self, name: str, text: bytes) -> None:
        try:
            message = {"sessionId": name, "message": text.decode()}
            await self._client.request("NodeWorker.sendMessageToWorker", message)
        except (ConnectionLost, RequestFailed, TimeoutError) as error:
            if (client := self._threads.pop(name, None)) is not None:
                client.lose(str(error) or "no answer in time")


class _Channel:
    """The way to one thread."""

    def __init__(self, send: Callable[[bytes], None], close: Callable[[], object]) -> None:
        self._send = send
        self._close = close

    def send_text(self, text: bytes) -> None:
        self._send(text)

    def close(self) -> None:
        self._close()
