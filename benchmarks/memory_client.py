"""The one raw client for every Python server in its own process: `python -m benchmarks.memory_client PEER TOOLS …`.

Messages go through the SDK's memory streams, so no transport is measured. The client's share of the CPU is the same
for all. The TypeScript peer measures itself in the same way, in its own file.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import jsonrpc_message_adapter

from benchmarks.peers.known import TRYSQUARE
from benchmarks.workload import HANDSHAKE, call, expected_text, opening

_WARM = 50


@asynccontextmanager
async def _server(peer: str, tools: int) -> AsyncGenerator[Any]:
    if peer != TRYSQUARE:
        yield importlib.import_module(f"benchmarks.peers.{peer}_peer").lowlevel(tools)
        return
    from benchmarks.peers.trysquare_peer import opened

    with tempfile.TemporaryDirectory() as project:
        async with opened(tools, Path(project)) as server:
            yield server


class MemoryClient:
    """Sends messages to a server in the same process and waits for each answer."""

    def __init__(self, reading: Any, writing: Any, tools: int) -> None:
        self._reading, self._writing, self._tools = reading, writing, tools
        self._waiting: dict[Any, asyncio.Future[Any]] = {}
        self.number = 0

    async def receive(self) -> None:
        """Hand every answer to the one who waits for it."""
        async for message in self._reading:
            known = message.message.model_dump(by_alias=True, exclude_none=True)
            if (waiting := self._waiting.pop(known.get("id"), None)) is not None:
                waiting.set_result(known)

    async def send(self, message: dict[str, Any]) -> Any:
        """Send a message, and wait for the answer if it asks for one."""
        future = asyncio.get_running_loop().create_future()
        if "id" in message:
            self._waiting[message["id"]] = future
        await self._writing.send(SessionMessage(jsonrpc_message_adapter.validate_python(message)))
        return await future if "id" in message else None

    async def one(self) -> None:
        """One call."""
        self.number += 1
        number = self.number
        answer = await self.send(call(number, self._tools, HANDSHAKE))
        if answer["result"]["content"][0]["text"] != expected_text(number):
            raise RuntimeError(f"a wrong answer: {answer}")


async def measured(peer: str, tools: int, callers: int, seconds: float) -> dict[str, float]:
    """The load on one server."""
    calls, seconds_taken, used = 0, 0.0, 0.0
    to_server, from_client = anyio.create_memory_object_stream[Any](256)
    to_client, from_server = anyio.create_memory_object_stream[Any](256)
    async with _server(peer, tools) as server, anyio.create_task_group() as group:
        group.start_soon(server.run, from_client, to_client, server.create_initialization_options())
        client = MemoryClient(from_server, to_server, tools)
        group.start_soon(client.receive)
        for message in opening(HANDSHAKE):
            await client.send(message)
        for _ in range(_WARM):
            await client.one()
        first, cpu, started = client.number, time.process_time(), time.monotonic()
        await asyncio.gather(*(_until(client, started + seconds) for _ in range(callers)))
        seconds_taken, used = time.monotonic() - started, time.process_time() - cpu
        group.cancel_scope.cancel()
        calls = client.number - first
    return {"calls": calls, "seconds": seconds_taken, "cpu": used}


async def _until(client: MemoryClient, end: float) -> None:
    await client.one()
    while time.monotonic() < end:
        await client.one()


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    peer, tools, callers, seconds = sys.argv[1:]
    print(json.dumps(asyncio.run(measured(peer, int(tools), int(callers), float(seconds)))))
