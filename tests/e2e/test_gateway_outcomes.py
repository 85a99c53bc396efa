"""What became of calls through a gateway that is killed: nothing that was answered is lost, and nothing is made up."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.e2e.stdio_process import StdioProcess, started_process
from tests.gateway.real_servers import REPOSITORY
from tests.support import size, told
from trysquare.core.json import JsonObject
from trysquare.store.call_ledger import CallLedger

TOY = REPOSITORY / "tests" / "gateway" / "toy_server.py"

# Servers are started and killed several times in the full size.
pytestmark = pytest.mark.timeout(600)


def serving(folder: Path) -> Any:
    """A gateway over one toy server, which is killed with SIGKILL at the end of the block."""
    config = folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"toy": {"command": sys.executable, "args": [str(TOY)]}}}))
    environment = {"XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(REPOSITORY / "src")}
    command = ["-m", "trysquare", "serve", "--gateway", str(config), "--project", str(folder)]
    return started_process(command, environment=environment)


def request(number: int, tool: str, text: Any, **more: Any) -> JsonObject:
    arguments = {"action": "execute", "tool_name": tool, "tool_inputs": {"text": text}, **more}
    params = {"name": "mcp_toy", "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


async def begin(server: StdioProcess) -> None:
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    await server.ask("initialize", client, "begin")
    await server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})


async def ask(server: StdioProcess, frame: JsonObject) -> JsonObject:
    await server.send(frame)
    return (await server.answer(frame["id"]))["result"]


def ledger_of(folder: Path) -> Counter[tuple[str, str]]:
    ledger = CallLedger(folder / "state" / "trysquare" / "ledger.db")
    try:
        return Counter((call.tool, call.state) for call in ledger.recent(limit=10_000))
    finally:
        ledger.close()


async def test_after_the_gateway_is_killed_the_ledger_knows_every_call(tmp_path: Path) -> None:
    answered = 0
    for round in range(1, size(2, 10) + 1):
        async with serving(tmp_path) as server:
            await begin(server)
            for number in range(10 * round):
                result = await ask(server, request(number, "echo", f"text {number}"))
                assert result["content"][0]["text"] == f"text {number}"
                answered += 1
            await server.send(request(-1, "hang", ""))
            # The same pipe leads to the server behind: once this is answered, the one before was sent.
            await ask(server, request(-2, "echo", "after"))
            answered += 1
        assert ledger_of(tmp_path) == {("echo", "done"): answered, ("hang", "sent_unknown"): round}


async def test_a_call_with_a_key_is_not_sent_again_after_the_gateway_was_killed(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        await begin(server)
        await ask(server, request(0, "echo", ""))
        first = await ask(server, request(1, "count", "", request_key="once"))
        assert first["content"][0]["text"] == "2"
        await server.send(request(2, "hang", "", request_key="lost"))
        with anyio.fail_after(60):
            while not ledger_of(tmp_path)["hang", "sending"]:
                await ask(server, request(3, "echo", ""))
        pending = await ask(server, request(4, "hang", "", request_key="lost"))
        assert "still running" in pending["content"][0]["text"]
    async with serving(tmp_path) as server:
        await begin(server)
        again = await ask(server, request(1, "count", "", request_key="once"))
        assert again["content"] == first["content"]
        assert again["_meta"]["trysquare/origin"]["replayed"] is True
        lost = await ask(server, request(2, "hang", "", request_key="lost"))
        assert lost["isError"] is True
        assert told(lost)["outcome"] == "sent_unknown"


async def test_a_large_result_goes_from_server_to_server_without_the_client(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        await begin(server)
        large = told(await ask(server, request(1, "large", "200000")))
        assert large["value"]["bytes"] > 200_000
        assert len(json.dumps(large)) < 5_000
        handle = large["value"]["handle"]
        back = told(await ask(server, request(2, "echo", {"$from": handle})))
        assert back["value"]["bytes"] == large["value"]["bytes"]
        wanted = {"handle": back["value"]["handle"], "offset": 199_990}
        part = {"name": "mcp_toy", "arguments": {"action": "read", "tool_inputs": wanted}}
        read = told((await server.ask("tools/call", part, 3))["result"])
        assert read["value"] == {"text": "x" * 10}
