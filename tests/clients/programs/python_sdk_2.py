"""The official Python SDK 2.x walks through our tools, in both eras."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

import mcp_types
from mcp import Client, StdioServerParameters
from walk import COMPLETION, Called, filled, main

MODES = {"2025-11-25": "legacy", "2026-07-28": "2026-07-28", "auto": "auto"}


async def accept(context: Any, params: Any) -> mcp_types.ElicitResult:
    return mcp_types.ElicitResult(action="accept", content=filled(params.requested_schema))


async def complete(context: Any, params: Any) -> mcp_types.CreateMessageResult:
    content = mcp_types.TextContent(text=COMPLETION)
    return mcp_types.CreateMessageResult(role="assistant", model="scripted", content=content)


class Walker:
    """One connection of the SDK's client."""

    package = "mcp"
    can = frozenset({"audio", "progress", "elicitation", "cancellation", "sampling"})

    def __init__(self, client: Client) -> None:
        self._client = client

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self._client.list_tools()).tools]

    async def call(self, name: str, arguments: dict[str, Any], seen: Callable[[float], None] | None) -> Called:
        async def report(progress: float, total: float | None, message: str | None) -> None:
            if seen is not None:
                seen(progress)

        result = await self._client.call_tool(name, arguments, progress_callback=report if seen else None)
        blocks: list[Any] = list(result.content)
        return Called(
            text="\n".join(block.text for block in blocks if block.type == "text"),
            data=result.structured_content,
            is_error=result.is_error,
            images=[block.mime_type for block in blocks if block.type == "image"],
            blocks=[block.type for block in blocks],
        )


@contextlib.asynccontextmanager
async def connect(name: str, target: dict[str, Any]) -> AsyncGenerator[Walker]:
    server: Any = target.get("url")
    if server is None:
        command, *arguments = target["command"]
        server = StdioServerParameters(command=command, args=arguments, env=target["env"], cwd=target["folder"])
    mode: Any = MODES[name.split()[-1]]
    async with Client(server, mode=mode, elicitation_callback=accept, sampling_callback=complete) as client:
        yield Walker(client)


if __name__ == "__main__":
    main(connect)
