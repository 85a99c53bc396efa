"""FastMCP's client walks through our tools, in both eras."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from walk import COMPLETION, Called, filled, main

MODES = {"2025-11-25": "legacy", "2026-07-28": "2026-07-28", "auto": "auto"}


async def accept(message: str, response_type: Any, params: Any, context: Any) -> dict[str, Any]:
    return filled(params.requested_schema)


async def complete(messages: Any, params: Any, context: Any) -> str:
    return COMPLETION


class Walker:
    """One connection of FastMCP's client."""

    package = "fastmcp"
    can = frozenset({"audio", "progress", "elicitation", "cancellation", "sampling"})

    def __init__(self, client: Any) -> None:
        self._client = client

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self._client.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any], progress: Callable[[float], None] | None) -> Called:
        async def report(done: float, total: float | None, message: str | None) -> None:
            if progress is not None:
                progress(done)

        result = await self._client.call_tool(name, arguments, progress_handler=report, raise_on_error=False)
        return Called(
            text="\n".join(block.text for block in result.content if block.type == "text"),
            data=result.structured_content,
            is_error=result.is_error,
            images=[block.mime_type for block in result.content if block.type == "image"],
            blocks=[block.type for block in result.content],
        )


def transport_of(target: dict[str, Any]) -> Any:
    """Where FastMCP connects to."""
    if "url" in target:
        return target["url"]
    command, *arguments = target["command"]
    return StdioTransport(command, arguments, env=target["env"], cwd=target["folder"], keep_alive=False)


@contextlib.asynccontextmanager
async def connect(name: str, target: dict[str, Any]) -> AsyncGenerator[Walker]:
    mode: Any = MODES[name.split()[-1]]
    handlers: Any = {"elicitation_handler": accept, "sampling_handler": complete}
    async with Client(transport_of(target), mode=mode, **handlers) as client:
        yield Walker(client)


if __name__ == "__main__":
    main(connect)
