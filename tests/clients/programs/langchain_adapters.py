"""langchain-mcp-adapters walks through our tools: each becomes a LangChain tool and is invoked as a model's call."""

# This runs where LangChain is, which is not where types are checked.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from mcp.types import ElicitResult
from walk import Called, filled, main


async def accept(mcp_context: Any, params: Any, context: Any) -> ElicitResult:
    return ElicitResult(action="accept", content=filled(params.requestedSchema))


class Walker:
    """The tools of one session. The adapters know no audio; below is SDK 1.x, which cannot cancel a request."""

    package = "langchain-mcp-adapters"
    can = frozenset({"progress", "elicitation"})

    def __init__(self) -> None:
        self._progress: Callable[[float], None] | None = None
        self._tools: dict[str, Any] = {}
        self.callbacks = Callbacks(on_progress=self._report, on_elicitation=accept)

    async def load(self, session: Any) -> None:
        loaded = await load_mcp_tools(session, callbacks=self.callbacks, server_name="ours")
        self._tools = {tool.name: tool for tool in loaded}

    async def _report(self, progress: float, total: float | None, message: str | None, context: Any) -> None:
        if self._progress is not None:
            self._progress(progress)

    async def tools(self) -> list[str]:
        return list(self._tools)

    async def call(self, name: str, arguments: dict[str, Any], progress: Callable[[float], None] | None) -> Called:
        self._progress = progress
        made = {"name": name, "args": arguments, "id": "1", "type": "tool_call"}
        message = await self._tools[name].ainvoke(made)
        blocks = [block if isinstance(block, dict) else {"type": "text", "text": block} for block in _listed(message)]
        return Called(
            text="\n".join(block["text"] for block in blocks if block["type"] == "text"),
            data=message.artifact["structured_content"] if message.artifact else None,
            is_error=message.status == "error",
            images=[block["mime_type"] for block in blocks if block["type"] == "image"],
        )


def _listed(message: Any) -> list[Any]:
    return message.content if isinstance(message.content, list) else [message.content]


@contextlib.asynccontextmanager
async def connect(name: str, target: dict[str, Any]) -> AsyncGenerator[Walker]:
    walker = Walker()
    if "url" in target:
        connection: dict[str, Any] = {"transport": "http", "url": target["url"]}
    else:
        command, *arguments = target["command"]
        started = {"command": command, "args": arguments, "env": target["env"], "cwd": target["folder"]}
        connection = {"transport": "stdio", **started}
    client = MultiServerMCPClient({"ours": connection}, callbacks=walker.callbacks)
    async with client.session("ours") as session:
        await walker.load(session)
        yield walker


if __name__ == "__main__":
    main(connect)
