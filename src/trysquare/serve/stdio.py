"""Serving over standard input and output: one client, one process, nothing but JSON on stdout."""

from __future__ import annotations

from trysquare.core.toolset import Toolset
from trysquare.serve.descriptors import diverted_output
from trysquare.serve.early import EarlyRecorder
from trysquare.serve.early_calls import BegunCalls
from trysquare.serve.options import ServeOptions
from trysquare.serve.server import build_server
from trysquare.serve.stdio_streams import StdioStreams

GRACE = 3.0
"""Seconds that open calls have to end after the client closed our input."""


async def serve_stdio(toolset: Toolset, options: ServeOptions | None = None) -> None:
    """Serve one client until it closes our input."""
    with diverted_output() as (read_from, write_to):
        await serve_descriptors(toolset, options, read_from=read_from, write_to=write_to)


async def serve_descriptors(
    toolset: Toolset,
    options: ServeOptions | None,
    *,
    read_from: int,
    write_to: int,
    grace: float = GRACE,
    early: EarlyRecorder | None = None,
    begun: BegunCalls | None = None,
) -> None:
    """Serve one client over two descriptors: pipes, sockets, a terminal or files."""
    server = build_server(toolset, options)
    server.calls.carries_raw = True
    if begun is not None:
        server.calls.tools.begun = begun
        server.untold = begun.changes
    streams = StdioStreams(read_from, write_to, grace=grace, early=early, begun=begun)
    streams.start()
    try:
        await server.run(streams.inbox, streams, server.create_initialization_options())
    finally:
        await streams.finish()
