"""A connection's requests: each is open until it ends, in whatever way it ends."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.server.clients import MODERN_META
from trysquare import StaticToolset, tool
from trysquare.server import Connection, build_server


class Memory:
    """A connection whose messages go nowhere but into a queue."""

    def __init__(self) -> None:
        self.started, self.stopped, self.idle = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.replies: asyncio.Queue[Any] = asyncio.Queue()
        self.connection = Connection(build_server(StaticToolset([tool(self.wait), tool(self.echo)])), self._take)
        self.connection.on_idle = self.idle.set

    async def wait(self) -> str:
        """Wait for good."""
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()
        return "never"

    async def echo(self, text: str) -> str:
        """Repeat a text."""
        return text

    def call(self, request_id: int, name: str, **arguments: Any) -> None:
        params = {"name": name, "arguments": arguments, "_meta": MODERN_META}
        self._send({"id": request_id, "method": "tools/call", "params": params})

    def cancel(self, request_id: Any) -> None:
        self._send({"method": "notifications/cancelled", "params": {"requestId": request_id}})

    def _send(self, message: dict[str, Any]) -> None:
        self.connection.receive(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def _take(self, message: bytes) -> None:
        self.replies.put_nowait(json.loads(message))


async def test_a_request_that_is_taken_back_before_it_began_is_open_no_longer() -> None:
    memory = Memory()
    memory.call(1, "wait")
    memory.cancel(1)
    await memory.idle.wait()

    assert memory.connection.is_idle
    assert (memory.started.is_set(), memory.replies.empty()) == (False, True)


async def test_the_id_of_a_request_that_was_taken_back_can_be_used_again() -> None:
    memory = Memory()
    memory.call(1, "wait")
    await memory.started.wait()
    assert not memory.connection.is_idle
    memory.cancel(1)
    memory.cancel(1)
    await memory.idle.wait()
    assert memory.stopped.is_set()

    memory.idle.clear()
    memory.call(1, "echo", text="again")
    await memory.idle.wait()
    assert memory.replies.get_nowait()["result"]["structuredContent"]["result"] == "again"
    assert memory.replies.empty()


async def test_one_that_waits_does_not_hold_up_another_nor_make_the_connection_idle() -> None:
    memory = Memory()
    memory.call(1, "wait")
    memory.call(1, "echo", text="same id")
    memory.call(2, "echo", text="other id")
    await memory.started.wait()
    first, second = await memory.replies.get(), await memory.replies.get()

    assert (first["id"], second["id"]) == (1, 2)
    assert "still open" in first["error"]["message"]
    assert not memory.idle.is_set()
    await memory.connection.close("the test ends", grace=3)
    assert memory.stopped.is_set()


async def test_taking_back_what_is_not_open_does_nothing() -> None:
    memory = Memory()
    for request_id in (7, "7", None, {}):
        memory.cancel(request_id)

    assert memory.connection.is_idle
    assert memory.replies.empty()
