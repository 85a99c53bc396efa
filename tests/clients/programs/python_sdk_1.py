"""The official Python SDK 1.x walks through our tools. It speaks the protocol of sessions only."""

# This runs where SDK 1.x is, which is not where types are checked.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from walk import COMPLETION, Called, filled, main


async def accept(context: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content=filled(params.requestedSchema))


async def complete(context: Any, params: Any) -> types.CreateMessageResult:
    content = types.TextContent(type="text", text=COMPLETION)
    return types.CreateMessageResult(role="assistant", model="scripted", content=content)


class Walker:
    """One session of SDK 1.x. It has no way to cancel a request, so that a call is only abandoned."""

    package = "mcp"
    can = frozenset({"audio", "progress", "elicitation", "sampling"})

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self._session.list_tools()).tools]

    async def call(self, name: str, arguments: dict[str, Any], seen: Callable[[float], None] | None) -> Called:
        async def report(progress: float, total: float | None, message: str | None) -> None:
            if seen is not None:
                seen(progress)

        result = await self._session.call_tool(name, arguments, progress_callback=report if seen else None)
        return Called(
            text="\n".join(block.text for block in result.content if block.type == "text"),
            data=result.structuredContent,
            is_error=result.isError,
            images=[block.mimeType for block in result.content if block.type == "image"],
            blocks=[block.type for block in result.content],
        )


@contextlib.asynccontextmanager
async def connect(name: str, target: dict[str, Any]) -> AsyncGenerator[Walker]:
    async with contextlib.AsyncExitStack() as stack:
        if "url" in target:
            read, write, _ = await stack.enter_async_context(streamablehttp_client(target["url"]))
        else:
            command, *arguments = target["command"]
            server = StdioServerParameters(command=command, args=arguments, env=target["env"], cwd=target["folder"])
            read, write = await stack.enter_async_context(stdio_client(server))
        session = await stack.enter_async_context(
            ClientSession(read, write, elicitation_callback=accept, sampling_callback=complete)
        )
        await session.initialize()
        yield Walker(session)


if __name__ == "__main__":
    main(connect)
