"""The SDK's client over streamable HTTP, in both eras, in front of a gateway."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from mcp import Client

from tests.e2e.servers import served_over_http
from tests.gateway.opened import ADD, Place
from trysquare.app import open_app
from trysquare.settings import Settings

MODES = ("legacy", "2026-07-28")


@contextlib.asynccontextmanager
async def served(place: Place, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[str]:
    """A gateway over HTTP, whose state lies with the test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(place.folder / "state"))
    async with (
        asyncio.timeout(60),
        open_app(Settings(gateway=(place.config,), project=place.folder)) as app,
        served_over_http(app.toolset, app.serve_options()) as address,
    ):
        yield address


@pytest.mark.parametrize("mode", MODES)
async def test_calls_and_lists_are_the_same_over_http(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    place = Place(folder=tmp_path)
    place.write_config({"sums": place.server("sums", ADD)})
    async with served(place, monkeypatch) as address, Client(address, mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["mcp_sums"]
        arguments = {"action": "execute", "tool_name": "add", "tool_inputs": {"a": 1, "b": "2"}}
        added = await client.call_tool("mcp_sums", arguments)
        assert added.structured_content == {"tool": "add", "arguments": {"a": 1, "b": 2}}
        assert added.meta is not None
        assert added.meta["trysquare/origin"]["server"] == "sums"


@pytest.mark.parametrize("mode", MODES)
async def test_the_address_chooses_the_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    place = Place(folder=tmp_path)
    place.write_config({"sums": place.server("sums", ADD)})
    async with served(place, monkeypatch) as address:
        async with Client(f"{address}?profile=gateway", mode=mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["mcp"]
            await client.call_tool("mcp", {"server": "sums"})
        async with Client(f"{address}?profile=gateway=full", mode=mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["sums__add", "gateway_read"]
            assert not (await client.call_tool("sums__add", {"a": 1, "b": 2})).is_error
