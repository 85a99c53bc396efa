"""A stockroom: a server made with the MCP SDK, without Trysquare. The demo kills it during `recount`."""

import os
from typing import Any

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("stock")
items = {"apples": 40, "pears": 12}


@server.tool()
def count(item: str) -> int:
    """How many of an item there are."""
    return items[item]


@server.tool()
async def recount(context: Context[Any]) -> str:
    """Count everything again, which takes a minute."""
    await context.report_progress(0, len(items), f"process {os.getpid()} counts")
    await anyio.sleep(60)
    return "Counted."


if __name__ == "__main__":
    server.run()
