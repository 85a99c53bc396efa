"""A bot in a server process of its own: killed, restarted, and ended on request after its answer."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from tests.bots.served_bots import STORY_BOT
from tests.e2e.stdio_process import REPOSITORY
from tests.support import told


def server(project: Path, *options: str) -> StdioServerParameters:
    """story_bot as a client starts it."""
    words = ["-m", "trysquare", "serve", "--bot", str(STORY_BOT), "--project", str(project), *options]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), "XDG_STATE_HOME": str(project / "user")}
    return StdioServerParameters(command=sys.executable, args=words, cwd=project, env=environment)


async def call(client: Client, tool: str, **parameters: Any) -> dict[str, Any]:
    """The envelope of a call of a tool of the bot."""
    result = await client.call_tool(f"story_bot_{tool}", {"parameters": parameters})
    return told(result)


async def test_another_server_goes_on_where_the_first_one_stood(tmp_path: Path) -> None:
    async with asyncio.timeout(90):
        async with Client(server(tmp_path), mode="legacy") as client:
            await call(client, "tool", confirm=True)
            await call(client, "tool")
            await call(client, "close_current_action", expected_action="shape.gather_context")
        async with Client(server(tmp_path, "--profile", "levels"), mode="auto") as client:
            assert len((await client.list_tools()).tools) == 11
            answer = await call(client, "tool")
    assert (answer["behavior"], answer["action"]) == ("shape", "decide_planning_criteria")


async def test_a_hard_restart_answers_first_and_then_ends_the_process(tmp_path: Path) -> None:
    words = server(tmp_path)
    process = await asyncio.create_subprocess_exec(
        words.command, *words.args, env=words.env, cwd=tmp_path,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    async with asyncio.timeout(60):
        process.stdin.write(OPENING + RESTART)
        answers = [await process.stdout.readline(), await process.stdout.readline()]
        ended = await process.wait()
    assert b'"status":"restarting"' in answers[1].replace(b" ", b"")
    assert ended != 0


OPENING = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"test","version":"1"}}}\n'
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
)
RESTART = (
    b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"story_bot_restart_server",'
    b'"arguments":{"parameters":{"hard":true}}}}\n'
)
