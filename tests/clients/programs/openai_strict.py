"""openai-agents calls tools as strict function calling does: every argument is filled in, whether it is meant or not.

    python openai_strict.py '{"NAME": {"command": [...], "folder": "...", "calls": {"TOOL": {...}}}}'

Prints for every server its tools: whether the schema could be made strict, the schema, and what the model is shown of
a call with "" and of one with null for what the call does not give.
"""

# This runs where openai-agents is, which is not where types are checked.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from agents.mcp import MCPServerStdio, MCPUtil
from agents.tool_context import ToolContext

from agents import Agent, RunContextWrapper, set_tracing_disabled


async def called(tool: Any, arguments: dict[str, Any]) -> str:
    """What the model is shown of a call."""
    sent = json.dumps(arguments)
    context = ToolContext(context=None, tool_name=tool.name, tool_call_id="1", tool_arguments=sent)
    return json.dumps(await tool.on_invoke_tool(context, sent))


async def report(target: dict[str, Any]) -> dict[str, Any]:
    """Every tool of a server, with what came of its calls."""
    command, *arguments = target["command"]
    started = {"command": command, "args": arguments, "cwd": target["folder"]}
    async with MCPServerStdio(started, client_session_timeout_seconds=90) as server:
        tools = await MCPUtil.get_function_tools(server, True, RunContextWrapper(context=None), Agent(name="strict"))
        found: dict[str, Any] = {}
        for tool in tools:
            schema, given = tool.params_json_schema, target["calls"].get(tool.name, {})
            blanks = ["", None] if tool.name in target["calls"] else []
            shown = [await called(tool, {**dict.fromkeys(schema["properties"], blank), **given}) for blank in blanks]
            found[tool.name] = {"is_strict": tool.strict_json_schema, "schema": schema, "shown": shown}
        return found


async def main() -> None:
    set_tracing_disabled(True)
    reports = {name: await report(target) for name, target in json.loads(sys.argv[1]).items()}
    sys.stdout.write(json.dumps(reports))


if __name__ == "__main__":
    asyncio.run(main())
