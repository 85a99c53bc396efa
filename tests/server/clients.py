"""Clients for the tests: the SDK's own, in every way it can talk to us."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import mcp_types as types
import uvicorn
from mcp import Client

from tests.announcing_server import AnnouncingServer
from tests.in_process import in_process
from trysquare import Toolset
from trysquare.server import HttpApp, HttpOptions, ServeOptions, http_app
from trysquare.server.http.app import guarded_config

MODES = ("legacy", "2026-07-28", "auto")
MODERN_META = {
    types.PROTOCOL_VERSION_META_KEY: "2026-07-28",
    types.CLIENT_CAPABILITIES_META_KEY: {"elicitation": {}},
    types.CLIENT_INFO_META_KEY: {"name": "raw", "version": "1"},
}


def client_of(toolset: Toolset, mode: str, options: ServeOptions | None = None, **callbacks: Any) -> Client:
    """A client in the same process."""
    return Client(in_process(toolset, options), mode=mode, **callbacks)  # pyright: ignore[reportArgumentType]


def text_of(result: types.CallToolResult) -> str:
    """The text that a model reads."""
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    return block.text


class Person:
    """Answers questions with words prepared beforehand, and remembers what was asked."""

    def __init__(self, *words: str, action: str = "accept") -> None:
        self._words = list(words)
        self._action = action
        self.asked: list[str] = []

    async def __call__(self, _context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.asked.append(params.message)
        if self._action != "accept":
            return types.ElicitResult(action=self._action)  # pyright: ignore[reportArgumentType]
        return types.ElicitResult(action="accept", content={"word": self._words.pop(0)})


@asynccontextmanager
async def served_http(
    toolset: Toolset, options: ServeOptions | None = None, http: HttpOptions | None = None
) -> AsyncGenerator[str]:
    """The toolset on a free port of this machine, behind the limits that `serve_http` has; yields the base address."""
    known = replace(http or HttpOptions(), grace=1.0)
    app = http_app(toolset, options, known)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = _AppServer(guarded_config(app, known), app)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve([listener]))
            async with asyncio.timeout(10):
                await server.listening.wait()
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                server.should_exit = True


class _AppServer(AnnouncingServer):
    def __init__(self, config: uvicorn.Config, app: HttpApp) -> None:
        super().__init__(config)
        self._http_app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._http_app.close()
        await super().shutdown(sockets)
