"""A server with the debugger, and a client that talks to it over stdio as any client would."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters, stdio_client

from tests.support import told


@dataclass(frozen=True, kw_only=True, slots=True)
class Desktop:
    """A client's view of the debugger."""

    client: Client

    async def send(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its envelope, success or not."""
        answer = await self.client.call_tool(f"debug_{tool}", arguments)
        return told(answer)

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool that has to succeed."""
        envelope = await self.send(tool, **arguments)
        assert envelope["success"], envelope
        return envelope

    async def refused(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool that has to fail, and return its error."""
        envelope = await self.send(tool, **arguments)
        assert not envelope["success"], envelope
        return {**envelope["error"], "instruction": envelope.get("instruction")}

    async def start(self, program: Path, *lines: int, **more: Any) -> dict[str, Any]:
        """Start a program in its own folder with breakpoints at lines of it."""
        breakpoints = [{"file": program.name, "line": line} for line in lines]
        return await self.call(
            "session_start", target=program.name, workspace_root=str(program.parent), breakpoints=breakpoints, **more
        )


@asynccontextmanager
async def served(folder: Path) -> AsyncGenerator[Desktop]:
    """Serve the debugger in a folder, whose state is kept in it."""
    environment = {**os.environ, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "trysquare", "serve", "--debugger"], cwd=folder, env=environment
    )
    async with Client(stdio_client(command)) as client:
        yield Desktop(client=client)


def size_of(envelope: dict[str, Any]) -> int:
    """How many characters an answer takes."""
    return len(json.dumps({key: part for key, part in envelope.items() if key != "value"}))
