"""openai-agents walks through our tools: an agent with an MCP server, and a model whose turns are scripted.

Schemas are converted to strict ones, as for OpenAI's strict function calling, and structured content is preferred.
"""

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
        self._called = name
        self._arguments = arguments
        text = ResponseOutputText(type="output_text", text="done", annotations=[])
        end = ResponseOutputMessage(id="end", type="message", role="assistant", status="completed", content=[text])
        self._end = end
        self._has_called = False

    async def get_response(self, *given: Any, tools: list[Any], **options: Any) -> ModelResponse:
        output: Any = self._end if self._has_called else self._call(tools)
        self._has_called = True
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def _call(self, tools: list[Any]) -> ResponseFunctionToolCall:
        """The call, with a value for every property: strict function calling knows no optional ones, and no others."""
        [tool] = [tool for tool in tools if tool.name == self._called]
        if not tool.strict_json_schema:
            raise AssertionError(f"{tool.name} cannot be called strictly: {tool.params_json_schema}")
        properties = tool.params_json_schema["properties"]
        empty = {name: part.get("default", "") for name, part in properties.items()}
        if not self._arguments.keys() <= properties.keys():
            empty = {}
        arguments = json.dumps({**empty, **self._arguments})
        call_id = f"call_{next(self.numbers)}"
        return ResponseFunctionToolCall(type="function_call", call_id=call_id, name=tool.name, arguments=arguments)

    def stream_response(self, *given: Any, **options: Any) -> Any:
        raise NotImplementedError("the walk does not stream")


class Walker:
    """An agent for every call. Progress and questions do not reach it."""

    package = "openai-agents"
    can = frozenset({"audio"})

    def __init__(self, server: Any) -> None:
        self._server = server

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self._server.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any], progress: Callable[[float], None] | None) -> Called:
        model, strict = Scripted(name, arguments), {"convert_schemas_to_strict": True}
        agent = Agent(name="walker", model=model, mcp_servers=[self._server], mcp_config=strict)
        run = await Runner.run(agent, "Go.")
        [output] = [item.output for item in run.new_items if item.type == "tool_call_output_item"]
        parts = [part if isinstance(part, dict) else {"type": "text", "text": str(part)} for part in _listed(output)]
        text = "\n".join(part["text"] for part in parts if part["type"] == "text")
        return Called(
            text=text,
            data=_structured(text),
            is_error=None,
            images=[part["image_url"].split(";")[0].removeprefix("data:") for part in parts if part["type"] == "image"],
        )


def _structured(text: str) -> dict[str, Any] | None:
    """The structured content, which is shown as JSON."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _listed(output: Any) -> list[Any]:
    return output if isinstance(output, list) else [output]


@contextlib.asynccontextmanager
async def connect(name: str, target: dict[str, Any]) -> AsyncGenerator[Walker]:
    set_tracing_disabled(True)
    options: dict[str, Any] = {"client_session_timeout_seconds": 60, "use_structured_content": True}
    if "url" in target:
        server: Any = MCPServerStreamableHttp({"url": target["url"]}, **options)
    else:
        command, *arguments = target["command"]
        started = {"command": command, "args": arguments, "env": target["env"], "cwd": target["folder"]}
        server = MCPServerStdio(started, **options)
    async with server:
        yield Walker(server)


if __name__ == "__main__":
    main(connect)
