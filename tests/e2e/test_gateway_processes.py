"""However a served gateway ends, the servers behind it end with it, and what they have started."""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import pytest

from tests.e2e.stdio_process import REPOSITORY
from tests.gateway.marked_processes import marked, none_is_left
from tests.gateway.toys import TOY

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "walk", "version": "1"}}


@pytest.mark.parametrize("way", ["input", "interrupt", "terminate", "kill"])
async def test_no_server_outlives_the_gateway(way: str, tmp_path: Path) -> None:
    mark = secrets.token_hex(8)
    toy = {"command": sys.executable, "args": ["-I", "-S", str(TOY)], "env": {"TOY_MARK": mark}}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"one": toy, "two": toy}}), encoding="utf-8")
    command = [sys.executable, "-m", "trysquare", "serve", "--gateway", str(config)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    async with await anyio.open_process(command, env=environment, cwd=tmp_path, stderr=None) as gateway:
        with anyio.fail_after(90):
            await _ask(gateway, "initialize", HELLO)
            for server in ("one", "two"):
                called = {"name": f"mcp_{server}", "arguments": {"action": "execute", "tool_name": "stray"}}
                answer = await _ask(gateway, "tools/call", called)
                assert not answer["result"].get("isError"), answer
            # A program has no environment for a moment after its start has succeeded.
            while len(marked(mark)) < 4:
                await anyio.lowlevel.checkpoint()
            assert len(marked(mark)) == 4
            await _end(gateway, way)
            await gateway.wait()
            await none_is_left(mark)


async def _ask(gateway: anyio.abc.Process, method: str, params: dict[str, Any]) -> Any:
    """Send a request and wait for its answer; what comes before it is passed over."""
    assert gateway.stdin is not None
    assert gateway.stdout is not None
    request = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
    await gateway.stdin.send(json.dumps(request).encode() + b"\n")
    received = b""
    while True:
        received += await gateway.stdout.receive()
        *lines, received = received.split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message.get("id") == method and "method" not in message:
                return message


async def _end(gateway: anyio.abc.Process, way: str) -> None:
    if way == "input":
        assert gateway.stdin is not None
        await gateway.stdin.aclose()
    else:
        gateway.send_signal({"interrupt": signal.SIGINT, "terminate": signal.SIGTERM, "kill": signal.SIGKILL}[way])
