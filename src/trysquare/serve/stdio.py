"""Serving over standard input and output: one client, one process, nothing but JSON on stdout."""

from __future__ import annotations

from mcp.server.stdio import stdio_server

from trysquare.core.toolset import Toolset
from trysquare.serve.options import ServeOptions
from trysquare.serve.server import build_server


async def serve_stdio(toolset: Toolset, options: ServeOptions | None = None) -> None:
    """Serve one client until it closes our input."""
    server = build_server(toolset, options)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
