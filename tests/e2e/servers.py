"""A toolset served over loopback HTTP in the test's own event loop, on a port that the system chose."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator

import uvicorn

from tests.announcing_server import AnnouncingServer
from trysquare import Toolset
from trysquare.server import HttpOptions, ServeOptions, http_app


@contextlib.asynccontextmanager
async def served_over_http(toolset: Toolset, options: ServeOptions | None = None) -> AsyncGenerator[str]:
    """Serve until the block ends; yields the address of the MCP endpoint."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        http = HttpOptions(host="127.0.0.1", port=port)
        app = http_app(toolset, options or ServeOptions(name="fixture", version="1"), http)
        config = uvicorn.Config(app, log_level="warning", ws="none", timeout_graceful_shutdown=5)
        server = AnnouncingServer(config)
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(server.serve(sockets=[listener]))
            await _first(server.listening, serving)
            try:
                yield f"http://127.0.0.1:{port}{http.path}"
            finally:
                server.should_exit = True


async def _first(event: asyncio.Event, serving: asyncio.Task[None]) -> None:
    """Wait until the server listens, or until it fails to."""
    waiting = asyncio.ensure_future(event.wait())
    done, _ = await asyncio.wait({waiting, serving}, return_when=asyncio.FIRST_COMPLETED, timeout=30)
    if waiting not in done:
        waiting.cancel()
        raise RuntimeError("the server did not start")
