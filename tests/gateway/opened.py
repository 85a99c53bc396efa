"""A gateway over scripted servers, opened for a test in a folder of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncGenerator, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trysquare import CallContext, Result, call_tool
from trysquare.core.json import JsonObject
from trysquare.gateway import GatewayToolset, open_gateway
from trysquare.store import LazyDatabase

SCRIPT = Path(__file__).with_name("scripted_server.py")
ADD: JsonObject = {
    "name": "add",
    "description": "Add two numbers.",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": True},
}
ANNOUNCE: JsonObject = {
    "name": "announce",
    "description": "Tell that the lists changed.",
    "inputSchema": {"type": "object"},
}


@dataclass(frozen=True, kw_only=True)
class Place:
    """The files of one test."""

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "mcp.json"

    def write_config(self, servers: Mapping[str, Any]) -> None:
        """Write the configuration."""
        self.config.write_text(json.dumps({"mcpServers": dict(servers)}), encoding="utf-8")

    def server(self, name: str, *tools: JsonObject, **more: Any) -> JsonObject:
        """Write what a server offers, and return its entry."""
        self.write_offers(name, *tools, **more)
        return {"command": sys.executable, "args": ["-I", "-S", str(SCRIPT), str(self.folder / f"{name}.json")]}

    def write_offers(self, name: str, *tools: JsonObject, **more: Any) -> None:
        """Write what a server offers from now on."""
        (self.folder / f"{name}.json").write_text(json.dumps({"tools": tools, **more}), encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Gateway:
    """An open gateway."""

    toolset: GatewayToolset

    async def call(self, tool: str, /, **arguments: Any) -> Result[Any]:
        """Call one of its tools."""
        return await call_tool(self.toolset, tool, arguments, CallContext())

    async def execute(self, server: str, tool: str, /, **inputs: Any) -> Result[Any]:
        """Run a tool of a server."""
        return await self.call(f"mcp_{server}", action="execute", tool_name=tool, tool_inputs=inputs)

    @contextlib.contextmanager
    def changes(self) -> Generator[asyncio.Queue[str]]:
        """The changes that the toolset tells from here on."""
        told: asyncio.Queue[str] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def hear(change: str) -> None:
            loop.call_soon_threadsafe(told.put_nowait, change)

        unsubscribe = self.toolset.subscribe(hear)
        try:
            yield told
        finally:
            unsubscribe()


@contextlib.asynccontextmanager
async def opened(place: Place, **options: Any) -> AsyncGenerator[Gateway]:
    """Open the gateway of a place."""
    state = LazyDatabase(place.folder / "state" / "state.db")
    try:
        # No time limit of its own: a busy machine is slow, and pytest ends a test that hangs.
        async with open_gateway([place.config], state=state, folder=place.folder / "state", **options) as toolset:
            yield Gateway(toolset=toolset)
    finally:
        state.close()
