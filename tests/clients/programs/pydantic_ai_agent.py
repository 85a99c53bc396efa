"""pydantic-ai walks through our tools: an agent with an MCP toolset, and a model whose turns are scripted."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

from fastmcp import Client
from fastmcp_client import MODES, accept, transport_of
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from walk import Called, main


class Walker:
    """An agent for every call. Its toolset reports progress and answers questions."""

    package = "pydantic-ai-slim"
    can = frozenset({"audio", "progress", "elicitation", "cancellation"})

    def __init__(self) -> None:
        self.progress: Callable[[float], None] | None = None
        self.toolset: Any = None

    async def report(self, done: float, total: float | None, message: str | None) -> None:
        if self.progress is not None:
            self.progress(done)

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self.toolset.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any], progress: Callable[[float], None] | None) -> Called:
        if progress is not None:
            self.progress = progress
        returned: list[ToolReturnPart] = []

        def turn(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            last = messages[-1].parts[-1]
            if isinstance(last, ToolReturnPart):
                returned.append(last)
                return ModelResponse(parts=[TextPart("done")])
            return ModelResponse(parts=[ToolCallPart(name, arguments)])

        agent = Agent(FunctionModel(turn), toolsets=[self.toolset], retries=1)
        run = await agent.run("Go.")
        return _called(returned, [part for message in run.all_messages() for part in message.parts])


def _called(returned: list[ToolReturnPart], parts: list[Any]) -> Called:
    [answer] = returned
    if answer.outcome != "success":
        return Called(text=str(answer.content), is_error=True)
    given = [item for part in parts for item in _listed(getattr(part, "content", None))]
    images = [item.media_type for item in given if isinstance(item, BinaryContent)]
    texts = [item for item in _listed(answer.content) if isinstance(item, str)]
    text = "\n".join(texts) or answer.model_response_str()
    return Called(text=text, data=None if isinstance(answer.content, str) else answer.content, images=images)


def _listed(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [content]


@contextlib.asynccontextmanager
async def connect(name: str, target: dict[str, Any]) -> AsyncGenerator[Walker]:
    walker = Walker()
    mode: Any = MODES[name.split()[-1]]
    client = Client(transport_of(target), mode=mode, elicitation_handler=accept, progress_handler=walker.report)
    async with MCPToolset(client) as toolset:
        walker.toolset = toolset
        yield walker


if __name__ == "__main__":
    main(connect)
