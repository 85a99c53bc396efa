"""The MCP SDK's low-level server, which validates arguments with jsonschema; the validators are made once."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from jsonschema import Draft202012Validator
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from benchmarks.peers.python_peer import serve
from benchmarks.workload import DESCRIPTION, SCHEMA, repeated, tool_name


def lowlevel(tools: int) -> Server[Any]:
    """The server with that many tools."""
    listed = [
        types.Tool(name=tool_name(number), description=DESCRIPTION, input_schema=SCHEMA) for number in range(tools)
    ]
    validators = {tool.name: Draft202012Validator(SCHEMA) for tool in listed}
    schemas = {tool.name: SCHEMA for tool in listed}

    async def on_list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def on_call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        validators[params.name].validate(arguments)
        text = repeated(arguments["text"], arguments.get("times", 1), arguments.get("loud", False))
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)], structured_content={"result": text}
        )

    return Server("lowlevel", on_list_tools=on_list_tools, on_call_tool=on_call_tool, get_tool_input_schema=schemas.get)


async def _stdio(tools: int) -> None:
    server = lowlevel(tools)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    serve(
        stdio=_stdio,
        app=lambda tools, stateless: lowlevel(tools).streamable_http_app(json_response=True, stateless_http=stateless),
    )
