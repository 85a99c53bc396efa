"""A transport for the SDK's client that reaches a server of ours in the same process."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from trysquare import Toolset
from trysquare.server import Connection, McpServer, ServeOptions, build_server


@asynccontextmanager
async def _to_own_server(toolset: Toolset, options: ServeOptions | None) -> AsyncGenerator[tuple[Any, Any]]:
    server = build_server(toolset, options)
    try:
        async with transport_to(server) as streams:
            yield streams
    finally:
        server.hub.close()


def in_process(toolset: Toolset, options: ServeOptions | None = None) -> Any:
    """The transport to a new server of the toolset: `Client(in_process(toolset))`."""
    return _to_own_server(toolset, options)


@asynccontextmanager
async def transport_to(server: McpServer) -> AsyncGenerator[tuple[Any, Any]]:
    """The transport to a server, as bytes in both directions."""
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](float("inf"))
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage](float("inf"))

    def write(message: bytes) -> None:
        # A client that has gone reads no more.
        if to_client.statistics().open_receive_streams:
            to_client.send_nowait(SessionMessage(types.jsonrpc_message_adapter.validate_json(message, by_name=False)))

    connection = Connection(server, write)

    async def read_all() -> None:
        async for sent in from_client:
            connection.receive(sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    async with to_client, from_server, to_server, from_client, anyio.create_task_group() as tasks:
        tasks.start_soon(read_all)
        try:
            yield from_server, to_server
        finally:
            with anyio.CancelScope(shield=True):
                await connection.close("the client has gone", grace=3)
            tasks.cancel_scope.cancel()
