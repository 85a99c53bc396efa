"""Client for MCP servers: over stdio, HTTP or in memory; each name is imported when it is first used.

from trysquare import Client

async with Client("server.py") as client:
    for tool in await client.list_tools():
        print(tool.name, tool.description)
    result = await client.call_tool("greet", {"name": "Ada"})
    print(result.text)

`Client(tools)` serves tools in this process, `Client("https://example.com/mcp")` reaches a server over HTTP,
`Client.stdio(["npx", "some-server"])` starts a command. All have the same methods, in every protocol version.
"""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.client.client import Client
    from trysquare.client.handlers import ElicitRequest, Handlers, LogMessage, Progress, SamplingRequest, Visit
    from trysquare.client.results import (
        Completion,
        PromptDefinition,
        PromptResult,
        ResourceDefinition,
        ResourceResult,
        ToolResult,
    )

__all__ = [
    "Client",
    "Completion",
    "ElicitRequest",
    "Handlers",
    "LogMessage",
    "Progress",
    "PromptDefinition",
    "PromptResult",
    "ResourceDefinition",
    "ResourceResult",
    "SamplingRequest",
    "ToolResult",
    "Visit",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "client": "Client",
        "handlers": "ElicitRequest Handlers LogMessage Progress SamplingRequest Visit",
        "results": "Completion PromptDefinition PromptResult ResourceDefinition ResourceResult ToolResult",
    },
)
