"""The MCP SDK's friendly server."""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import MCPServer

from benchmarks.peers.python_peer import serve
from benchmarks.workload import DESCRIPTION, repeat, tool_name


def built(tools: int) -> MCPServer[Any]:
    """The server with that many tools."""
    server = MCPServer("mcpserver")
    for number in range(tools):
        server.add_tool(repeat, name=tool_name(number), description=DESCRIPTION)
    return server


if __name__ == "__main__":
    serve(
        stdio=lambda tools: built(tools).run_stdio_async(),
        app=lambda tools, stateless: built(tools).streamable_http_app(json_response=True, stateless_http=stateless),
    )
