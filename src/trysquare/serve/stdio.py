"""Serving over standard input and output: one client, one process, nothing but JSON on stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress

from trysquare.core.errors import ConfigurationError
from trysquare.core.toolset import Toolset
from trysquare.serve.early import EarlyRecorder
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
) -> None:
    """Serve one client over two descriptors: pipes, sockets, a terminal or files."""
    server = build_server(toolset, options)
    server.calls.carries_raw = True
    streams = StdioStreams(read_from, write_to, grace=grace, early=early)
    streams.start()
    try:
        await server.run(streams.inbox, streams, server.create_initialization_options())
    finally:
        await streams.finish()


@contextmanager
def diverted_output() -> Generator[tuple[int, int]]:
    """Keep stdin and stdout for the protocol: what anything prints goes to stderr, what anything reads is empty.

    The descriptors themselves are moved, so that it holds for libraries in C and for child processes as well.
    """
    private_in, private_out = _own_copies()
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        os.dup2(nothing, 0)
        os.dup2(2 if _is_open(2) else nothing, 1)
        yield private_in, private_out
    finally:
        # What was printed and not yet written belongs to stderr; where that is closed, nobody wants it.
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os.dup2(private_in, 0)
        os.dup2(private_out, 1)
        for descriptor in (private_in, private_out, nothing):
            os.close(descriptor)


def _own_copies() -> tuple[int, int]:
    try:
        return os.dup(0), os.dup(1)
    except OSError:
        raise ConfigurationError(
            "Standard input or output is closed, so no client can be served.",
            hint="Let an MCP client start this command, or serve over HTTP.",
        ) from None


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
