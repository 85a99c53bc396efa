"""FastMCP 4 as it ships."""

from __future__ import annotations

from typing import Any

from fastmcp import FastMCP
from fastmcp.tools import Tool

from benchmarks.peers.python_peer import serve
from benchmarks.workload import DESCRIPTION, repeat, tool_name


def built(tools: int) -> FastMCP[Any]:
    """The server with that many tools."""
    server: FastMCP[Any] = FastMCP("fastmcp")
    for number in range(tools):
        server.add_tool(Tool.from_function(repeat, name=tool_name(number), description=DESCRIPTION))
    return server


if __name__ == "__main__":
    serve(
        stdio=lambda tools: built(tools).run_stdio_async(show_banner=False, log_level="ERROR"),
        app=lambda tools, stateless: built(tools).http_app(json_response=True, stateless_http=stateless),
    )
