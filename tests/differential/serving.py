"""Serves one of the two servers: over HTTP in the test's event loop, or over stdio as a program.

    python -m tests.differential.serving ours|reference SOCKET

The program is handed pairs of pipes over the socket, and serves each pair as the standard streams of a process of its
own. It forks instead of starting anew, because most of a short connection would be the start of an interpreter.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from typing import Any, Literal, TypeAlias

import uvicorn
from mcp.server.stdio import stdio_server

from tests.announcing_server import AnnouncingServer
from tests.differential import material
from tests.differential.offers import differential_toolset
from tests.differential.reference import reference_server
from trysquare.server import HttpOptions, ServeOptions, http_app, serve_stdio

Side: TypeAlias = Literal["ours", "reference"]


def options() -> ServeOptions:
    """How our toolset is served, with the same limits as the reference."""
    return ServeOptions(name="ours", version="1", page_size=material.PAGE_SIZE, list_ttl_ms=material.LIST_TTL_MS)


def application(side: Side, *, stateless: bool) -> Any:
    """The ASGI application of one side."""
    if side == "ours":
        http = HttpOptions(stateless=stateless, max_body=material.MAX_BODY)
        return http_app(differential_toolset(), options(), http)
    return reference_server().streamable_http_app(stateless_http=stateless, max_request_body_size=material.MAX_BODY)


@contextlib.asynccontextmanager
async def served(side: Side, *, stateless: bool) -> AsyncGenerator[int]:
    """Serve over HTTP until the block ends; yields the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            application(side, stateless=stateless), log_level="critical", ws="none", timeout_graceful_shutdown=5
        )
        server = AnnouncingServer(config)
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listener]))
            async with asyncio.timeout(30):
                await server.listening.wait()
            try:
                yield listener.getsockname()[1]
            finally:
                server.should_exit = True


async def serve_program(side: Side) -> None:
    """Serve over the standard streams until the client closes them."""
    if side == "ours":
        await serve_stdio(differential_toolset(), options())
        return
    server = reference_server()
    async with stdio_server() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())


def host(side: Side, control: socket.socket) -> None:
    """Serve every pair of pipes that comes over the socket, until it is closed."""
    # Nobody waits for the children: each ends when its client closes its pipes.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, 1, 2)
        if not data:
            return
        if os.fork() == 0:
            control.close()
            for descriptor, standard in zip(descriptors, (0, 1), strict=True):
                os.dup2(descriptor, standard)
                os.close(descriptor)
            asyncio.run(serve_program(side))
            return
        for descriptor in descriptors:
            os.close(descriptor)


if __name__ == "__main__":
    host("ours" if sys.argv[1] == "ours" else "reference", socket.socket(fileno=int(sys.argv[2])))
