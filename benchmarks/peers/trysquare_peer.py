"""Trysquare for the in-memory client: the same app that `trysquare serve` opens."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import jsonrpc_message_adapter

from trysquare.app import open_app
from trysquare.server import Connection, McpServer, build_server
from trysquare.settings import Settings

TOOLS = "benchmarks.peers.trysquare_tools:tools"


@asynccontextmanager
async def opened(tools: int, project: Path) -> AsyncGenerator[Any]:
    """The low-level server with that many tools, wrapped and catalogued as every user gets it."""
    os.environ["BENCH_TOOLS"] = str(tools)
    async with open_app(Settings(tools=(TOOLS,), project=project)) as app:
        yield _OverStreams(build_server(app.toolset, app.serve_options()))


class _OverStreams:
    """The server behind the SDK's memory streams, as the other peers have it; on our side a message is bytes."""

    def __init__(self, server: McpServer) -> None:
        self._server = server

    def create_initialization_options(self) -> None:
        """Nothing: the server introduces itself."""

    async def run(self, reading: Any, writing: Any, _: None) -> None:
        def write(message: bytes) -> None:
            writing.send_nowait(SessionMessage(jsonrpc_message_adapter.validate_json(message)))

        connection = Connection(self._server, write)
        async for sent in reading:
            connection.receive(sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode())
