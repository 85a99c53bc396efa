"""A real server from npm over HTTP, in both of its transports, which is killed and started again."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.gateway.real_servers import SERVERS, node
from tests.gateway.remote_servers import channels, remote
from tests.gateway.toys import Person, called_by, hear_nothing
from trysquare import CallContext, ToolError
from trysquare.gateway.pool.pool import ServerPool, open_pool
from trysquare.store import Secrets

WAYS: dict[str, tuple[str, str]] = {"streamableHttp": ("/mcp", "http"), "sse": ("/sse", "sse")}


@asynccontextmanager
async def everything(way: str, port: int) -> AsyncGenerator[None]:
    """The server, until the block ends, when it is killed."""
    script = SERVERS / "server-everything" / "dist" / "index.js"
    process = await asyncio.create_subprocess_exec(
        node(), str(script), way, env={**os.environ, "PORT": str(port)},
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        with anyio.fail_after(60):
            while b"on port" not in (line := await process.stderr.readline()):
                assert line, "the server ended before it listened"
        draining = asyncio.ensure_future(process.stderr.read())
        yield
    finally:
        process.kill()
        await process.wait()
    await draining


async def echo(pool: ServerPool, message: str) -> str:
    arguments = json.dumps({"message": message}).encode()
    found = await pool.call("far", "echo", arguments, CallContext(), on_sent=lambda: None)
    return json.loads(found.body)["content"][0]["text"]


@pytest.mark.parametrize("way", WAYS)
async def test_a_real_server_is_called_and_found_again_after_it_was_killed(way: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    path, transport = WAYS[way]
    config = remote(f"http://127.0.0.1:{port}{path}", transport)
    secrets = Secrets(tmp_path / "secrets.json")
    async with open_pool({"far": config}, on_change=hear_nothing, transports=channels(secrets)) as pool:
        async with everything(way, port):
            assert "echo" in [definition.name for definition in await pool.definitions("far")]
            assert await echo(pool, "one") == "Echo: one"
            assert await progressed(pool)
        with anyio.fail_after(30), pytest.raises(ToolError):
            await echo(pool, "nobody there")
        async with everything(way, port):
            with anyio.fail_after(30):
                assert await echo(pool, "two") == "Echo: two"


async def progressed(pool: ServerPool) -> bool:
    """Whether a long tool of the server tells how far it is."""
    person = Person()
    context = called_by(person, meta={"progress_token": 1})
    arguments = json.dumps({"duration": 0.2, "steps": 2}).encode()
    await pool.call("far", "trigger-long-running-operation", arguments, context, on_sent=lambda: None)
    return bool(person.told)
