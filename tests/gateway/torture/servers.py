"""The servers of one trial: the one that misbehaves and one that does not, as entries of a configuration."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Final

from tests.gateway.torture.journal import Journal
from tests.gateway.torture.lanes import Lane

ROOT: Final = Path(__file__).parents[3]
FAULTY, STEADY = "faulty", "steady"
_PROGRAM = ["-S", "-m", "tests.gateway.torture.chaos_process"]


def stdio_entry(journal: Journal, name: str, *, era: str = "legacy", fault: str = "") -> dict[str, Any]:
    """A server that the gateway starts."""
    return {
        "command": sys.executable,
        "args": [*_PROGRAM, *_options(journal, name, era, fault)],
        "env": {"PYTHONPATH": str(ROOT)},
    }


def _options(journal: Journal, name: str, era: str, fault: str) -> list[str]:
    return ["--journal", str(journal.path), "--name", name, "--era", era, "--fault", fault]


@contextlib.asynccontextmanager
async def faulty_entry(journal: Journal, lane: Lane, fault: str) -> AsyncGenerator[dict[str, Any]]:
    """The server that misbehaves. A remote one is started again whenever it ends, as its owner would."""
    if lane.transport == "stdio":
        yield stdio_entry(journal, FAULTY, era=lane.era, fault=fault)
        return
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/{'sse' if lane.transport == 'sse' else 'mcp'}"
        entry = {"type": lane.transport, "url": url}
        if fault == "exit":
            # A remote server that exits at once leaves nobody behind that listens.
            listener.close()
            yield entry
            return
        async with _kept(journal, lane, fault, listener.fileno()):
            yield entry


@contextlib.asynccontextmanager
async def _kept(journal: Journal, lane: Lane, fault: str, listener: int) -> AsyncGenerator[None]:
    words = [*_options(journal, FAULTY, lane.era, fault), "--transport", lane.transport, "--socket", str(listener)]
    keeping = asyncio.create_task(_keep([*_PROGRAM, *words], listener))
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])


async def _keep(words: list[str], listener: int) -> None:
    while True:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *words, cwd=ROOT, pass_fds=[listener], stdin=asyncio.subprocess.DEVNULL
        )
        try:
            await process.wait()
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
