"""The client of a debug adapter, where a connection comes and goes."""

from __future__ import annotations

import asyncio

from trysquare.debug.dap.client import DapClient


async def test_a_connection_that_is_given_up_before_it_is_made_is_closed_when_it_is() -> None:
    lost: list[str] = []
    client = DapClient(on_event=lambda name, body: None, on_lost=lost.append)
    client.close()
    server = await asyncio.get_running_loop().create_server(lambda: client, "127.0.0.1", 0)
    async with server, asyncio.timeout(30):
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        assert await reader.read() == b""
        writer.close()
    assert lost == ["The connection was closed."]
