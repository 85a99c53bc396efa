"""A FastMCP server as a source: its tools, prompts and resources, in both protocol versions and with its lifespan."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import fastmcp
import pytest
from fastmcp import Context
from fastmcp.exceptions import ToolError as TheirToolError

from trysquare import Answer, Client, ErrorCode, ToolError
from trysquare.cli.main import main
from trysquare.integrations.fastmcp_toolset import from_fastmcp

# Their context logs by what the newer version calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
VERSIONS = ("2025-11-25", "2026-07-28")
opened: list[str] = []


def shop() -> fastmcp.FastMCP[Any]:
    @asynccontextmanager
    async def lifespan(server: fastmcp.FastMCP[Any]) -> AsyncGenerator[dict[str, str]]:
        opened.append("open")
        yield {"till": "full"}
        opened.append("closed")

    mcp = fastmcp.FastMCP("shop", instructions="Sells tea.", lifespan=lifespan)

    @mcp.tool(annotations={"readOnlyHint": True}, tags={"prices"})
    def price(name: str, count: int = 1) -> dict[str, int]:
        """The price of an article."""
        return {"price": 3 * count}

    @mcp.tool
    async def order(name: str, context: Context) -> str:
        answer = await context.elicit(f"Order {name}?", str)
        return f"{answer.action} {getattr(answer, 'data', None)}"

    @mcp.tool
    async def slow(context: Context) -> str:
        await context.report_progress(1, 2, "half")
        await context.info("working")
        return str(context.lifespan_context["till"])

    @mcp.tool
    def broken() -> None:
        raise TheirToolError("out of tea")

    @mcp.prompt
    def recipe(name: str) -> str:
        return f"How to make {name}"

    @mcp.resource("menu://today")
    def menu() -> str:
        return "tea"

    @mcp.resource("menu://{day}")
    def menu_of(day: str) -> str:
        return f"tea on {day}"

    return mcp


@pytest.mark.parametrize("version", VERSIONS)
async def test_everything_of_a_server_works_in_both_versions(version: str) -> None:
    opened.clear()
    seen: list[Any] = []

    async def answer(question: Any, *_: Any) -> Answer:
        seen.append(question)
        return Answer(action="accept", content={"value": "today"})

    async with Client(from_fastmcp(shop()), elicitation_handler=answer, protocol_version=version) as client:
        assert [tool.name for tool in await client.list_tools()][:4] == ["price", "order", "slow", "broken"]
        assert (await client.call_tool("price", {"name": "tea", "count": 2})).data == {"price": 6}
        assert "accept today" in (await client.call_tool("order", {"name": "tea"})).text
        assert "full" in (await client.call_tool("slow", {})).text
        with pytest.raises(ToolError) as refused:
            await client.call_tool("broken", {})
        assert "out of tea" in str(refused.value)
        assert len(seen) == 1
        assert "How to make tea" in str(await client.get_prompt("recipe", {"name": "tea"}))
        assert "tea" in str(await client.read_resource("menu://today"))
        assert "tea on monday" in str(await client.read_resource("menu://monday"))
    assert opened.count("open") == opened.count("closed")


async def test_a_wrong_argument_comes_back_corrected_before_the_server_sees_it() -> None:
    async with Client(from_fastmcp(shop())) as client:
        with pytest.raises(ToolError) as refused:
            await client.call_tool("price", {"nam": "tea"})
    assert refused.value.code == ErrorCode.VALIDATION_UNKNOWN_PARAM
    assert refused.value.next == {"tool": "price", "arguments": {"name": "tea"}}


async def test_two_callers_at_once_are_asked_each_for_itself() -> None:
    toolset = from_fastmcp(shop())

    async def order(name: str) -> str:
        async def answer(question: Any, *_: Any) -> Answer:
            return Answer(action="accept", content={"value": f"for {name}"})

        async with Client(toolset, elicitation_handler=answer, protocol_version=VERSIONS[0]) as client:
            return (await client.call_tool("order", {"name": name})).text

    found = await asyncio.gather(*map(order, ("a", "b", "c")))
    assert [f"for {name}" in text for name, text in zip("abc", found, strict=True)] == [True] * 3


def test_a_file_with_a_server_is_a_source_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "their_server.py"
    file.write_text(
        'from fastmcp import FastMCP\n\nmcp = FastMCP("x")\n\n\n@mcp.tool\ndef add(a: int, b: int) -> int:\n'
        "    return a + b\n",
        encoding="utf-8",
    )
    assert main(["call", str(file), "add", "a=1", "b=2"]) == 0
    assert "3" in capsys.readouterr().out
