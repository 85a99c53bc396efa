"""Functions around the requests of clients, in both protocol versions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from trysquare import Client, CombinedToolset, DeclarationError, McpRequest, Proceed, ToolError, Tools
from trysquare.reload import open_reloading
from trysquare.server import build_server

VERSIONS = ("2025-11-25", "2026-07-28")
versions = pytest.mark.parametrize("version", VERSIONS)
Seen = list[tuple[str, dict[str, Any]]]


def library() -> Tools:
    tools = Tools("library")

    @tools.tool
    def count(word: str) -> int:
        """Count a word."""
        return len(word)

    @tools.tool
    def burn() -> str:
        """Burn it."""
        return "burnt"

    @tools.resource("book://{title}")
    def book(title: str) -> str:
        """A book."""
        return title

    @tools.prompt
    def letter(to: str) -> str:
        """A letter."""
        return f"Dear {to}"

    return tools


@versions
async def test_every_request_passes_with_its_parameters(version: str) -> None:
    tools, seen = library(), Seen()

    @tools.on_request
    async def audit(request: McpRequest, proceed: Proceed) -> dict[str, Any]:
        assert request.principal.subject
        seen.append((request.method, request.params))
        return await proceed()

    async with Client(tools, protocol_version=version) as client:
        await client.list_tools()
        await client.list_tools()
        assert (await client.call_tool("count", {"word": "tea"})).data == 3
        assert (await client.read_resource("book://Emma")).text == "Emma"
        assert (await client.get_prompt("letter", {"to": "Ada"})).messages[0][1] is not None
    assert seen[0][0] == ("initialize" if version == VERSIONS[0] else "server/discover")
    assert [method for method, _ in seen].count("tools/list") >= 1
    assert ("tools/call", {"name": "count", "arguments": {"word": "tea"}}) in seen
    assert ("resources/read", {"uri": "book://Emma"}) in seen
    assert ("prompts/get", {"name": "letter", "arguments": {"to": "Ada"}}) in seen


@versions
async def test_a_list_may_be_filtered(version: str) -> None:
    tools = library()

    @tools.on_request("tools/list")
    async def public(request: McpRequest, proceed: Proceed) -> dict[str, Any]:
        result = await proceed()
        result["tools"] = [each for each in result["tools"] if each["name"] != "burn"]
        return result

    async with Client(tools, protocol_version=version) as client:
        assert "burn" not in [each.name for each in await client.list_tools()]
        assert (await client.call_tool("burn")).text == "burnt"


@versions
async def test_a_refusal_reaches_the_client_with_its_instruction(version: str) -> None:
    tools = library()

    @tools.on_request("tools/call", "resources/read", "prompts/get")
    async def closed(request: McpRequest, proceed: Proceed) -> dict[str, Any]:
        raise ToolError("The library is closed.", instruction="Come back tomorrow.")

    async with Client(tools, protocol_version=version) as client:
        refused = await client.call_tool("count", {"word": "tea"}, raise_on_error=False)
        assert (refused.is_error, refused.instruction) == (True, "Come back tomorrow.")
        for request in (client.read_resource("book://Emma"), client.get_prompt("letter", {"to": "Ada"})):
            with pytest.raises(ToolError, match=r"The library is closed\."):
                await request
        assert [each.name for each in await client.list_tools()][:2] == ["count", "burn"]


@versions
async def test_an_unknown_tool_stays_an_error_of_the_protocol(version: str) -> None:
    tools = library()

    @tools.on_request
    async def through(request: McpRequest, proceed: Proceed) -> dict[str, Any]:
        return await proceed()

    for served in (tools, library()):
        async with Client(served, protocol_version=version) as client:
            with pytest.raises(ToolError, match="Did you mean `count`"):
                await client.call_tool("cuont", {"word": "tea"})


async def test_the_first_is_outermost_and_each_may_change_the_result() -> None:
    tools, order = library(), list[str]()

    @tools.on_request("prompts/get")
    async def outer(request: McpRequest, proceed: Proceed) -> dict[str, Any]:
        order.append("outer")
        result = await proceed()
        return {**result, "description": f"{result['description']} (outer)"}

    @tools.on_request("prompts/get")
    async def inner(request: McpRequest, proceed: Proceed) -> dict[str, Any]:
        order.append("inner")
        return {**await proceed(), "description": "changed"}

    async with Client(tools) as client:
        assert (await client.get_prompt("letter", {"to": "Ada"})).description == "changed (outer)"
    assert order == ["outer", "inner"]


async def test_a_list_that_passes_is_not_cached_for_others() -> None:
    tools, cached = library(), Seen()

    @tools.on_request("tools/list")
    async def noted(request: McpRequest, proceed: Proceed) -> dict[str, Any]:
        cached.append((request.method, await proceed()))
        return cached[-1][1]

    app = tools.http_app()
    listed = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": ENVELOPE}}
    async with app.lifespan(), web(app) as client:
        for scope in ("private", "private"):
            answer = await client.post("/mcp", json=listed, headers=HEADERS)
            assert answer.json()["result"]["cacheScope"] == scope
    assert len(cached) == 2


ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": VERSIONS[1],
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HEADERS = {
    "accept": "application/json, text/event-stream", "mcp-protocol-version": VERSIONS[1], "mcp-method": "tools/list",
    "x-team": "green",
}  # fmt: skip


def web(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1:8000")


async def test_headers_are_seen_over_http() -> None:
    tools, teams = library(), list[str]()

    @tools.on_request("tools/list")
    async def team(request: McpRequest, proceed: Proceed) -> dict[str, Any]:
        teams.append(request.headers["x-team"])
        return await proceed()

    app = tools.http_app()
    listed = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": ENVELOPE}}
    async with app.lifespan(), web(app) as client:
        assert (await client.post("/mcp", json=listed, headers=HEADERS)).status_code == 200
    assert teams == ["green"]


async def test_those_of_every_part_of_a_server_apply() -> None:
    one, other, seen = library(), Tools("other"), list[str]()

    @one.on_request("tools/list")
    async def first(request: McpRequest, proceed: Proceed) -> dict[str, Any]:
        seen.append("first")
        return await proceed()

    @other.on_request("tools/list")
    async def second(request: McpRequest, proceed: Proceed) -> dict[str, Any]:
        seen.append("second")
        return await proceed()

    async with Client(CombinedToolset([one.toolset(), other.toolset()])) as client:
        await client.list_tools()
    assert seen[:2] == ["first", "second"]


@pytest.mark.parametrize("wrong", [None, [], "text"])
async def test_a_result_that_is_none_is_a_crash_of_the_author(wrong: Any, caplog: pytest.LogCaptureFixture) -> None:
    tools = library()

    @tools.on_request("prompts/get")
    async def forgets(request: McpRequest, proceed: Proceed) -> dict[str, Any]:
        await proceed()
        return wrong

    async with Client(tools) as client:
        with pytest.raises(ToolError, match="incident"):
            await client.get_prompt("letter", {"to": "Ada"})
    assert "`forgets`" in caplog.text


def test_a_misspelt_method_is_refused() -> None:
    tools = library()

    @tools.on_request("tools/lists")
    async def never(request: McpRequest, proceed: Proceed) -> dict[str, Any]:
        return await proceed()

    with pytest.raises(DeclarationError, match="Did you mean `tools/list`"):
        build_server(tools.toolset())


RELOADED = """
from trysquare import McpRequest, Proceed, ToolError, Tools

tools = Tools("reloaded")


@tools.resource("note://one")
def note() -> str:
    return "one"


@tools.on_request("resources/read")
async def closed(request: McpRequest, proceed: Proceed) -> dict:
    raise ToolError("{text}")
"""


@pytest.fixture
async def reloading(tmp_path: Path) -> AsyncIterator[tuple[Path, Any]]:
    source = tmp_path / "reloaded_server.py"
    source.write_text(RELOADED.replace("{text}", "closed"), encoding="utf-8")
    async with open_reloading([str(source)], project=tmp_path) as toolset:
        yield source, toolset


async def test_a_reloaded_source_brings_its_own(reloading: tuple[Path, Any]) -> None:
    source, toolset = reloading
    changes: asyncio.Queue[str] = asyncio.Queue()
    toolset.subscribe(changes.put_nowait)
    async with Client(toolset) as client:
        with pytest.raises(ToolError, match="closed"):
            await client.read_resource("note://one")
        source.write_text(RELOADED.replace("{text}", "still closed, and longer"), encoding="utf-8")
        while await changes.get() != "tools":
            pass
        with pytest.raises(ToolError, match="still closed"):
            await client.read_resource("note://one")
