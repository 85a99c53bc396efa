"""Opening the gateway: servers start when they are needed, and a call waits for what is being asked."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.opened import ADD, Place, opened
from trysquare.gateway import DefinitionRegistry

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(folder=tmp_path)


def _states(gateway: Any) -> dict[str, str]:
    return {name: one.state for name, one in gateway.toolset.servers.pool.status().items()}


async def test_only_the_server_that_is_called_is_started(place: Place) -> None:
    place.write_config({"sums": place.server("sums", ADD), "texts": place.server("texts", ADD)})
    async with opened(place) as gateway:
        assert _states(gateway) == {"sums": "asleep", "texts": "asleep"}
        assert (await gateway.execute("sums", "add", a=1, b=2)).success
        assert _states(gateway) == {"sums": "running", "texts": "asleep"}
        assert gateway.toolset.servers.pool.status()["sums"].connections == 1


async def test_a_call_that_comes_while_the_tools_are_stored_waits_for_them(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, goes_on = threading.Event(), threading.Event()
    take = DefinitionRegistry.take

    def take_slowly(self: DefinitionRegistry, *arguments: Any) -> Any:
        entered.set()
        assert goes_on.wait(20)
        return take(self, *arguments)

    monkeypatch.setattr(DefinitionRegistry, "take", take_slowly)
    place.write_config({"sums": place.server("sums", ADD)})
    async with opened(place) as gateway:
        gateway.toolset.servers.refresh_in_background(gateway.toolset.servers.server("sums"))
        assert await asyncio.to_thread(entered.wait, 20)
        called = asyncio.create_task(gateway.execute("sums", "add", a=1, b=2))
        for _ in range(100):
            await asyncio.sleep(0)
        goes_on.set()
        assert (await called).success


def test_the_first_use_of_a_server_is_logged(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(place.folder))
    place.write_config({"sums": place.server("sums", ADD)})
    call = {"name": "mcp_sums", "arguments": {"action": "execute", "tool_name": "add", "tool_inputs": {"a": 1, "b": 2}}}
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    served = subprocess.run(
        [sys.executable, "-m", "trysquare", "serve", "--gateway", place.config, "--project", place.folder],
        input="".join(json.dumps(one) + "\n" for one in asked),
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    answers = {one.get("id"): one for one in map(json.loads, served.stdout.splitlines())}
    assert answers[2]["result"]["structuredContent"] == {"tool": "add", "arguments": {"a": 1, "b": 2}}
    assert "WARNING trysquare.gateway: first use of server sums" in served.stderr
