"""Inspector lists and calls our tools over stdio and HTTP, in both eras, and finds their schemas portable."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from tests.e2e.inspector import FAILED_CALL, NOT_PORTABLE, Era, inspected
from tests.e2e.offered_tools import PIXEL, tools
from tests.e2e.servers import served_over_http
from tests.e2e.stdio_process import started_process
from tests.support import about

pytestmark = pytest.mark.node

COMMAND = [str(Path(sys.executable).parent / "trysquare"), "serve", "--tools"]
OURS = [*COMMAND, "tests.e2e.offered_tools:tools"]
NAMES = [tool.name for tool in tools.toolset().tools()]

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended."""

eras = pytest.mark.parametrize("era", ["modern", "legacy"])
transports = pytest.mark.parametrize("transport", ["stdio", "http"])


@contextlib.asynccontextmanager
async def target_of(transport: str) -> AsyncGenerator[Sequence[str]]:
    """What tells Inspector where the server is."""
    if transport == "stdio":
        yield ["--transport", "stdio", *OURS]
        return
    async with served_over_http(tools.toolset()) as url:
        yield ["--transport", "http", "--server-url", url]


@eras
@transports
async def test_strict_listing_finds_every_tool_and_no_fault(era: Era, transport: str) -> None:
    async with target_of(transport) as target:
        seen = await inspected(target, era, "--strict", "--method", "tools/list")
    assert (seen.code, seen.errors) == (0, ""), seen
    listed = [tool["name"] for tool in seen.result["tools"]]
    assert [name for name in listed if name in NAMES] == NAMES
    assert all(tool["inputSchema"]["additionalProperties"] is False for tool in seen.result["tools"])


@eras
async def test_schemas_of_every_kind_are_portable(era: Era) -> None:
    target = ["--transport", "stdio", *COMMAND, "tests.fuzz.toolset:tools"]
    seen = await inspected(target, era, "--strict", "--method", "tools/list")
    assert seen.code == 0, seen


async def test_strict_listing_does_find_faults() -> None:
    target = ["--transport", "stdio", *COMMAND, "tests.e2e.unportable_tools:tools"]
    seen = await inspected(target, "legacy", "--strict", "--method", "tools/list")
    assert seen.code == NOT_PORTABLE


def _call(name: str, arguments: str) -> list[str]:
    return ["--method", "tools/call", "--tool-name", name, "--tool-args-json", arguments]


@eras
@transports
async def test_a_call_brings_the_value_and_its_text(era: Era, transport: str) -> None:
    async with target_of(transport) as target:
        seen = await inspected(target, era, *_call("greet", '{"name": "Ada", "tone": "formal"}'))
    assert seen.code == 0, seen
    assert seen.result["structuredContent"] == {"result": "Good day, Ada"}
    assert about(seen.result) == {"instruction": "Show the greeting as it is."}
    assert seen.result["content"][0]["text"].startswith("Good day, Ada")


@eras
@transports
async def test_a_call_brings_an_image(era: Era, transport: str) -> None:
    async with target_of(transport) as target:
        seen = await inspected(target, era, *_call("picture", "{}"))
    assert seen.result["content"] == [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]


@eras
@transports
async def test_a_misspelt_argument_brings_the_corrected_call(era: Era, transport: str) -> None:
    async with target_of(transport) as target:
        seen = await inspected(target, era, *_call("greet", '{"nam": "Ada"}'))
    assert seen.code == FAILED_CALL, seen
    assert seen.result["isError"] is True
    assert about(seen.result)["next"] == {"tool": "greet", "arguments": {"name": "Ada"}}


@eras
async def test_the_command_serves_over_http_until_it_is_interrupted(era: Era) -> None:
    async with started_process([*OURS, "--http", "127.0.0.1:0"]) as process:
        await process.wait_until(lambda: b"/mcp" in process.stderr)
        [address] = re.findall(r"http://127\.0\.0\.1:\d+/mcp", process.stderr.decode("utf-8"))
        target = ["--transport", "http", "--server-url", address]
        seen = await inspected(target, era, *_call("greet", '{"name": "Ada"}'))
        assert seen.result["structuredContent"]["result"] == "Hello, Ada"
        assert await process.interrupt() == INTERRUPTED
    assert process.lines == []
    assert "Traceback" not in process.stderr.decode("utf-8")
