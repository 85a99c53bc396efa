"""openai-agents walks through our tools: an agent with an MCP server, and a model whose turns are scripted."""

# This runs where openai-agents is, which is not where types are checked.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from walk import Called, main

from agents import Agent, ModelResponse, Runner, Usage, set_tracing_disabled


class Scripted(Model):
    """A model that calls one tool and then ends its turn."""

    numbers = itertools.count()

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        call_id = f"call_{next(self.numbers)}"
        call = ResponseFunctionToolCall(
            type="function_call", call_id=call_id, name=name, arguments=json.dumps(arguments)
        )
        text = ResponseOutputText(type="output_text", text="done", annotations=[])
        end = ResponseOutputMessage(id="end", type="message", role="assistant", status="completed", content=[text])
        self._turns = iter((call, end))

    async def get_response(self, *given: Any, **options: Any) -> ModelResponse:
        return ModelResponse(output=[next(self._turns)], usage=Usage(), response_id=None)

    def stream_response(self, *given: Any, **options: Any) -> Any:
        raise NotImplementedError("the walk does not stream")


class Walker:
    """An agent for every call. Progress and questions do not reach it."""

    package = "openai-agents"
    can = frozenset[str]()

    def __init__(self, server: Any) -> None:
        self._server = server

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self._server.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any], progress: Callable[[float], None] | None) -> Called:
        agent = Agent(name="walker", model=Scripted(name, arguments), mcp_servers=[self._server])
        run = await Runner.run(agent, "Go.")
        [output] = [item.output for item in run.new_items if item.type == "tool_call_output_item"]
        parts = [part if isinstance(part, dict) else {"type": "text", "text": str(part)} for part in _listed(output)]
        return Called(
            text="\n".join(part["text"] for part in parts if part["type"] == "text"),
            is_error=None,
            images=[part["image_url"].split(";")[0].removeprefix("data:") for part in parts if part["type"] == "image"],
        )


def _listed(output: Any) -> list[Any]:
    return output if isinstance(output, list) else [output]


@contextlib.asynccontextmanager
async def connect(name: str, target: dict[str, Any]) -> AsyncGenerator[Walker]:
    set_tracing_disabled(True)
    if "url" in target:
        server: Any = MCPServerStreamableHttp({"url": target["url"]}, client_session_timeout_seconds=60)
    else:
        command, *arguments = target["command"]
        started = {"command": command, "args": arguments, "env": target["env"], "cwd": target["folder"]}
        server = MCPServerStdio(started, client_session_timeout_seconds=60)
    async with server:
        yield Walker(server)


if __name__ == "__main__":
    main(connect)
