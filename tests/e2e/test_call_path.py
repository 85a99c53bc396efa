"""A warm call passes through few of our source files, so that its way can be read."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from tests.e2e.stdio_process import REPOSITORY, StdioProcess, started_process
from tests.fuzz.frames import modern_meta
from tests.gateway.toys import TOY
from trysquare.core.json import JsonObject

PROGRAM = Path(__file__).with_name("counting_program.py")
MOST_FILES = {"tool": 18, "gateway": 35}
"""Of a plain call of a tool, and of one through the gateway."""
WARM, ROUNDS = 5, 7
CALLS: dict[str, JsonObject] = {
    "tool": {"name": "greet", "arguments": {"name": "Ada"}},
    "gateway": {
        "name": "mcp_toy",
        "arguments": {"action": "execute", "tool_name": "echo", "tool_inputs": {"text": "hello"}},
    },
}


class Marks:
    """The other end of the counting program's socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def files(self) -> frozenset[str]:
        """The files since the last time."""
        self._writer.write(b"m")
        return frozenset(json.loads(await self._reader.readline()))


@contextlib.asynccontextmanager
async def counted(*arguments: str, folder: Path) -> AsyncGenerator[tuple[StdioProcess, Marks]]:
    """A server whose calls are watched."""
    ours, theirs = socket.socketpair()
    with theirs:
        reader, writer = await asyncio.open_connection(sock=ours)
        command = [str(PROGRAM), str(theirs.fileno()), "serve", *arguments]
        async with started_process(command, folder=folder, pass_fds=(theirs.fileno(),)) as server:
            yield server, Marks(reader, writer)
        writer.close()


def served(kind: str, folder: Path) -> list[str]:
    """What to serve, for a call of a kind."""
    if kind == "tool":
        return ["--tools", "tests.e2e.offered_tools:tools"]
    config = folder / "mcp.json"
    toy = {"command": sys.executable, "args": ["-I", "-S", str(TOY)]}
    config.write_text(json.dumps({"mcpServers": {"toy": toy}}), encoding="utf-8")
    return ["--gateway", str(config)]


async def open_connection(server: StdioProcess, era: str) -> JsonObject:
    """Make the handshake; returns the `_meta` of every call."""
    if era == "2026-07-28":
        return modern_meta()
    params: JsonObject = {"protocolVersion": era, "capabilities": {}, "clientInfo": {"name": "count", "version": "1"}}
    await server.ask("initialize", params, "opening")
    await server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return {}


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("kind", CALLS)
async def test_a_warm_call_passes_through_few_files(
    kind: str, era: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    seen: Counter[frozenset[str]] = Counter()
    async with counted(*served(kind, tmp_path), folder=REPOSITORY) as (server, marks):
        meta = await open_connection(server, era)
        for number in range(WARM + ROUNDS):
            await marks.files()
            answer = await server.ask("tools/call", {**CALLS[kind], "_meta": meta}, number)
            assert not answer["result"].get("isError"), answer
            if number >= WARM:
                seen[await marks.files()] += 1
    # A timer may run beside a call now and then: what most calls have in common is their way.
    [(files, _)] = seen.most_common(1)
    record_property("shown", f"files of ours in a warm call ({kind}, {era}): {len(files)}, at most {MOST_FILES[kind]}")
    assert "core/call.py" in files, "the call is watched"
    assert len(files) <= MOST_FILES[kind], "\n".join(sorted(files))
