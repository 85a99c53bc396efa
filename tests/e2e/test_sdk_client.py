"""The SDK's client walks through everything we offer, over every transport and in both eras."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.context import ClientRequestContext
from mcp_types import (
    ElicitRequestFormParams,
    ElicitResult,
    ImageContent,
    PromptReference,
    TextContent,
    TextResourceContents,
)

from tests.e2e.offered_tools import PIXEL, tools
from tests.e2e.servers import served_over_http
from tests.e2e.stdio_process import REPOSITORY
from tests.e2e.test_inspector import NAMES, OURS
from tests.in_process import in_process
from tests.support import about

MODES = ("legacy", "2026-07-28", "auto")
TRANSPORTS = ("memory", "stdio", "http")
ROUNDS = 20
"""How often progress is asked for: a report that gets lost is one of many."""


async def _accept(context: ClientRequestContext, params: Any) -> ElicitResult:
    assert isinstance(params, ElicitRequestFormParams)
    return ElicitResult(action="accept", content={"sure": True})


@contextlib.asynccontextmanager
async def connected(transport: str, mode: str) -> AsyncGenerator[Client]:
    """A client of our server."""
    async with contextlib.AsyncExitStack() as stack:
        target: Any = in_process(tools.toolset())
        if transport == "http":
            target = await stack.enter_async_context(served_over_http(tools.toolset()))
        if transport == "stdio":
            target = StdioServerParameters(command=OURS[0], args=OURS[1:], cwd=REPOSITORY, env=dict(os.environ))
        yield await stack.enter_async_context(Client(target, mode=mode, elicitation_callback=_accept))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_client_can_use_everything_that_is_offered(transport: str, mode: str) -> None:
    async with asyncio.timeout(90), connected(transport, mode) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert [name for name in listed if name in NAMES] == NAMES
        await _require_calls(client)
        await _require_questions_and_progress(client)
        await _require_cancellation(client)
        await _require_prompts(client)
        await _require_resources(client)


async def _require_calls(client: Client) -> None:
    greeted = await client.call_tool("greet", {"name": "Ada"})
    assert not greeted.is_error
    assert greeted.structured_content is not None
    assert greeted.structured_content["result"] == "Hello, Ada"
    wrong = await client.call_tool("total", {"amount": [1, 2]})
    assert wrong.is_error
    healed = about(wrong)["next"]
    assert healed == {"tool": "total", "arguments": {"amounts": [1, 2]}}
    right = await client.call_tool(healed["tool"], healed["arguments"])
    assert right.structured_content is not None
    assert right.structured_content["result"] == 3
    failed = await client.call_tool("fail", {"reason": "rain"})
    assert failed.is_error
    [text] = failed.content
    assert isinstance(text, TextContent)
    assert "It failed: rain" in text.text
    [image] = (await client.call_tool("picture", {})).content
    assert isinstance(image, ImageContent)
    assert (image.mime_type, image.data) == ("image/png", PIXEL)


async def _require_questions_and_progress(client: Client) -> None:
    steps: list[float] = []

    async def keep(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    for _ in range(ROUNDS):
        await client.call_tool("count", {"upto": 3}, progress_callback=keep)
        assert steps == [1, 2, 3], "the last report comes before the result"
        steps.clear()
    confirmed = await client.call_tool("confirm", {"question": "Sure?"})
    assert confirmed.structured_content is not None
    assert confirmed.structured_content["result"] == "accept: True"


async def _require_cancellation(client: Client) -> None:
    began = asyncio.Event()

    async def begin(progress: float, total: float | None, message: str | None) -> None:
        began.set()

    call = asyncio.ensure_future(client.call_tool("linger", {"name": "first"}, progress_callback=begin))
    await began.wait()
    call.cancel()
    await asyncio.wait([call])
    cancelled = await client.call_tool("await_cancelled", {})
    assert cancelled.structured_content is not None
    assert cancelled.structured_content["result"] == "first"


async def _require_prompts(client: Client) -> None:
    prompts = (await client.list_prompts()).prompts
    assert "welcome" in [prompt.name for prompt in prompts]
    shown = await client.get_prompt("welcome", {"name": "Ada"})
    content = shown.messages[0].content
    assert isinstance(content, TextContent)
    assert content.text == "Please welcome Ada."
    completed = await client.complete(
        PromptReference(type="ref/prompt", name="welcome"), {"name": "name", "value": "A"}
    )
    assert completed.completion.values == []


async def _require_resources(client: Client) -> None:
    assert "walk://start" in [str(resource.uri) for resource in (await client.list_resources()).resources]
    templates = (await client.list_resource_templates()).resource_templates
    assert "walk://{name}" in [template.uri_template for template in templates]
    for address, expected in (("walk://start", "start"), ("walk://third", "step third")):
        [read] = (await client.read_resource(address)).contents
        assert isinstance(read, TextResourceContents)
        assert read.text == expected
