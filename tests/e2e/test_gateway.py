"""The SDK's client walks through real npm servers behind the gateway, in both eras."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.context import ClientRequestContext
from mcp_types import (
    CallToolResult,
    ElicitResult,
    ResourceListChangedNotification,
    TextContent,
    TextResourceContents,
)

from tests.gateway.real_servers import EXAMPLE, REPOSITORY, command, environment
from tests.support import told

pytestmark = pytest.mark.node
MODES = ("legacy", "2026-07-28")


async def _accept(context: ClientRequestContext, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ada"})


@contextlib.asynccontextmanager
async def connected(
    folder: Path, mode: str, *options: str, config: Path = EXAMPLE, told: asyncio.Event | None = None
) -> AsyncGenerator[Client]:
    """A client of `trysquare serve --gateway`; `told` is set when the resources of the server are others."""

    async def hear(message: Any) -> None:
        if told is not None and isinstance(message, ResourceListChangedNotification):
            told.set()

    program, *words = command("serve", "--gateway", str(config), "--project", str(folder), *options)
    server = StdioServerParameters(command=program, args=words, cwd=REPOSITORY, env=environment(folder))
    made = Client(server, mode=mode, elicitation_callback=_accept, message_handler=hear)
    async with asyncio.timeout(90), made as client, _listening(client, mode, told):
        yield client


@contextlib.asynccontextmanager
async def _listening(client: Client, mode: str, told: asyncio.Event | None) -> AsyncGenerator[None]:
    """In the new era a client opens a stream for what it wants to hear."""
    if told is None or mode == "legacy":
        yield
        return

    async def hear() -> None:
        async with client.listen(resources_list_changed=True) as news:
            opened.set()
            await anext(aiter(news))
            told.set()

    opened = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(hear())
        await opened.wait()
        yield


def _text(result: CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


def _told(result: CallToolResult) -> dict[str, Any]:
    return told(result)


async def _execute(client: Client, server: str, tool: str, **inputs: Any) -> CallToolResult:
    return await client.call_tool(f"mcp_{server}", {"action": "execute", "tool_name": tool, "tool_inputs": inputs})


@pytest.mark.parametrize("mode", MODES)
async def test_servers_are_listed_and_their_tools_found_and_run(tmp_path: Path, mode: str) -> None:
    async with connected(tmp_path, mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [
            "mcp_everything",
            "mcp_memory",
            "mcp_files",
        ]
        listed = _told(await client.call_tool("mcp_everything", {}))
        [shown] = [tool for tool in listed["value"] if tool["name"] == "get-sum"]
        assert shown["description"] == "Returns the sum of two numbers"
        assert {name: part["type"] for name, part in shown["inputs"]["properties"].items()} == {
            "a": "number",
            "b": "number",
        }
        echoed = await _execute(client, "everything", "echo", message="hello")
        assert (_text(echoed), echoed.is_error) == ("Echo: hello", False)
        assert echoed.meta is not None
        assert echoed.meta["trysquare/origin"] == {"server": "everything", "tool": "echo", "outcome": "done"}
        structured = await _execute(client, "everything", "get-structured-content", location="Chicago")
        assert "temperature" in _told(structured)


@pytest.mark.parametrize("mode", MODES)
async def test_what_is_wrong_with_a_call_comes_with_the_call_that_works(tmp_path: Path, mode: str) -> None:
    async with connected(tmp_path, mode) as client:
        wrong = await _execute(client, "everything", "get-sums", a=1, b=2)
        following = _told(wrong)["next"]
        assert "6" not in _text(wrong)
        assert following["arguments"]["tool_name"] == "get-sum"
        right = await client.call_tool(following["tool"], following["arguments"])
        assert "3" in _text(right)
        mended = await _execute(client, "everything", "get-sum", a="4", b=2)
        assert "6" in _text(mended)
        assert mended.meta is not None
        assert mended.meta["trysquare/origin"]["notes"]
        missing = await _execute(client, "everything", "get-sum", a=1)
        assert "`b` is missing" in _told(missing)["error"]["message"]


@pytest.mark.parametrize("mode", MODES)
async def test_progress_and_questions_of_a_server_reach_the_client(tmp_path: Path, mode: str) -> None:
    steps: list[float] = []

    async def keep(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async with connected(tmp_path, mode) as client:
        arguments = {"duration": 0.2, "steps": 2}
        long = {"action": "execute", "tool_name": "trigger-long-running-operation", "tool_inputs": arguments}
        await client.call_tool("mcp_everything", long, progress_callback=keep)
        assert steps[-1] == 2
        asked = await _execute(client, "everything", "trigger-elicitation-request")
        assert "Ada" in _text(asked)


@pytest.mark.parametrize("mode", MODES)
async def test_prompts_and_resources_of_a_server_are_ours(tmp_path: Path, mode: str) -> None:
    told = asyncio.Event()
    async with connected(tmp_path, mode, told=told) as client:
        await _execute(client, "everything", "echo", message="hello")
        await told.wait()
        shown = await client.get_prompt("everything__args-prompt", {"city": "Rome"})
        assert "Rome" in str(shown.messages[0].content)
        read = await client.read_resource("demo://resource/dynamic/text/7")
        assert isinstance(read.contents[0], TextResourceContents)
        assert "7" in read.contents[0].text
        listed = [str(resource.uri) for resource in (await client.list_resources()).resources]
        assert "demo://resource/static/document/features.md" in listed


@pytest.mark.parametrize("mode", MODES)
async def test_a_server_that_is_killed_is_there_for_the_next_call_and_its_memory_too(tmp_path: Path, mode: str) -> None:
    async with connected(tmp_path, mode) as client:
        ada = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
        await _execute(client, "memory", "create_entities", entities=[ada])
        killed = _kill_server("server-memory", tmp_path)
        found = await _execute(client, "memory", "search_nodes", query="Ada")
        assert "writes programs" in _text(found)
        assert killed not in [process.pid for process in _servers("server-memory", tmp_path)]


def _servers(package: str, folder: Path) -> list[psutil.Process]:
    """The servers of one gateway: those that carry its folder in their environment."""
    found = [one for one in psutil.Process().children(recursive=True) if _is_server(one, package, folder)]
    return found


def _is_server(process: psutil.Process, package: str, folder: Path) -> bool:
    try:
        command_line, variables = process.cmdline(), process.environ()
    except psutil.Error:
        return False
    return any(package in word for word in command_line) and variables.get("MEMORY_FILE_PATH", "").startswith(
        str(folder)
    )


def _kill_server(package: str, folder: Path) -> int:
    [server] = _servers(package, folder)
    server.kill()
    return server.pid


@pytest.mark.parametrize("mode", MODES)
async def test_every_profile_leads_to_the_same_tools(tmp_path: Path, mode: str) -> None:
    async with connected(tmp_path, mode) as client:
        await client.call_tool("mcp_memory", {})
    async with connected(tmp_path, mode, "--profile", "full") as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert {"memory__read_graph", "memory__search_nodes", "gateway_read"} <= set(names)
        assert "mcp_memory" not in names
        graph = await client.call_tool("memory__read_graph", {})
        assert graph.structured_content == {"entities": [], "relations": []}
    async with connected(tmp_path, mode, "--profile", "gateway=gateway") as client:
        [tool] = (await client.list_tools()).tools
        assert tool.name == "mcp"
        found = _told(await client.call_tool("mcp", {"query": "read the whole knowledge graph"}))["value"]
        assert (found[0]["server"], found[0]["name"], found[0]["fit"]) == ("memory", "read_graph", "likely")
        arguments = {"action": "execute", "server": "memory", "tool_name": "read_graph"}
        assert (await client.call_tool("mcp", arguments)).structured_content == {"entities": [], "relations": []}
    async with connected(tmp_path, mode, "--profile", "search") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["find_tools", "call_tool"]
        called = await client.call_tool("call_tool", {"name": "memory__read_graph"})
        assert json.loads(_text(called)) == {"entities": [], "relations": []}


async def test_edits_of_the_file_are_taken_up_while_a_call_is_under_way(tmp_path: Path) -> None:
    servers = json.loads(_uncommented(EXAMPLE))["mcpServers"]
    folder = str(EXAMPLE.parent)
    for entry in servers.values():
        entry["cwd"] = folder
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"everything": servers["everything"]}}), encoding="utf-8")
    async with (
        connected(tmp_path, "2026-07-28", config=config) as client,
        client.listen(tools_list_changed=True) as news,
    ):
        long = {"duration": 2, "steps": 2}
        call = asyncio.create_task(_execute(client, "everything", "trigger-long-running-operation", **long))
        config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
        # The first news may be of what the first server has.
        async for _ in news:
            names = [tool.name for tool in (await client.list_tools()).tools]
            if names == ["mcp_everything", "mcp_memory", "mcp_files"]:
                break
        assert not call.done()
        assert "completed" in _text(await call)


def _uncommented(path: Path) -> str:
    return "\n".join(
        line for line in path.read_text(encoding="utf-8").splitlines() if not line.strip().startswith("//")
    )
