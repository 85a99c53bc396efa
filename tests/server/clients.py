"""Clients for the tests: the SDK's own, in every way it can talk to us."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp import Client

from tests.in_process import in_process
from trysquare import Toolset
from trysquare.server import HttpOptions, ServeOptions, http_app

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
    """The toolset on a free port of this machine; yields the base address."""
    config = uvicorn.Config(
        http_app(toolset, options, http),
        http="httptools",
        ws="none",
        port=0,
        log_config=None,
        lifespan="on",
        timeout_graceful_shutdown=1,
    )
    server = _Quiet(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve)
        with anyio.fail_after(10):
            await server.listening.wait()
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True


class _Quiet(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = anyio.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.listening.set()
