"""The vanguard: a server that is called starts before the settings are read, under the same conditions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gateway.opened import ADD, Place, opened
from trysquare.gateway.vanguard import open_vanguard


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return Place(folder=tmp_path)


async def test_the_server_behind_a_called_tool_is_started(place: Place) -> None:
    place.write_config({"sums": place.server("sums", ADD), "texts": place.server("texts", ADD)})
    async with open_vanguard([place.config], ["mcp_sums"]) as servers:
        assert servers is not None
        await servers.fleet.greeting("sums")
        states = {name: one.state for name, one in servers.fleet.status().items()}
        assert states == {"sums": "running", "texts": "asleep"}
        async with opened(place, opened=servers) as gateway:
            assert (await gateway.execute("sums", "add", a=1, b=2)).success


async def test_a_file_that_is_no_configuration_is_left_to_the_door(place: Place) -> None:
    place.config.write_text("[1, 2")
    async with open_vanguard([place.config], ["mcp_sums"]) as servers:
        assert servers is None


@pytest.mark.parametrize("text", ["{}", '{"a": {"command": "/nowhere/a"}}'], ids=["no server", "one that fails"])
async def test_what_cannot_be_started_keeps_nothing_up(place: Place, text: str) -> None:
    place.config.write_text(text)
    async with open_vanguard([place.config], ["mcp_a"]) as servers:
        assert servers is not None
        assert [one.state for one in servers.fleet.status().values() if one.state == "running"] == []


async def test_a_server_that_cannot_be_started_is_tried_once_before_its_call(place: Place) -> None:
    place.write_config({"a": {"command": "/nowhere/a"}})
    async with open_vanguard([place.config], ["mcp_a"]) as servers:
        assert servers is not None
        async with opened(place, called=["mcp_a"], opened=servers) as gateway:
            await gateway.toolset.settled()
            refused = await gateway.execute("a", "add")
    assert "`/nowhere/a` was not found" in str(refused.error)
    assert "in a row" not in str(refused.error)


def test_it_takes_none_of_what_is_slow_to_load() -> None:
    heavy = ["pydantic", "pydantic_core", "mcp"]
    code = f"import sys, trysquare.gateway.vanguard; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_a_server_that_is_used_for_the_first_time_is_told_in_the_log_as_ever(place: Place) -> None:
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
    answers = {one["id"]: one for one in map(json.loads, served.stdout.splitlines())}
    assert answers[2]["result"]["structuredContent"] == {"tool": "add", "arguments": {"a": 1, "b": 2}}
    assert "WARNING trysquare.gateway: first use of the server sums" in served.stderr


HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
