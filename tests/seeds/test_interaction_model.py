"""The requirements of the specification of MCP servers as gateway tools, by their own names.

Trees of Elysia, with `MCPTool(server_name=…)` and servers added at initialization, are in tests/integrations/elysia.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.gateway.opened import Place, opened

SEARCH: dict[str, Any] = {
    "name": "search",
    "description": "Search for documents",
    "inputSchema": {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Search query"},
            "limit": {"type": "integer", "default": 10},
        },
        "required": ["query"],
    },
}
ANALYZE: dict[str, Any] = {
    "name": "analyze",
    "description": "Analyze text sentiment",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "Text to analyze"}},
        "required": ["text"],
    },
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    found = Place(folder=tmp_path)
    found.write_config({"api-ai-mcp": found.server("api-ai-mcp", SEARCH, ANALYZE)})
    return found


async def test_level_1_names_the_server_its_transport_and_that_it_has_several_tools(place: Place) -> None:
    async with opened(place) as gateway:
        found = gateway.toolset.find("mcp_api_ai_mcp")
    assert found is not None
    assert found.description == "MCP server 'api-ai-mcp' (stdio) - provides access to multiple tools."


async def test_level_1_parameters_are_described_and_have_their_defaults(place: Place) -> None:
    async with opened(place) as gateway:
        found = gateway.toolset.find("mcp_api_ai_mcp")
    assert found is not None
    schema = found.input_schema
    assert list(schema["properties"]) == ["action", "tool_name", "tool_inputs"]
    assert all(part["description"] for part in schema["properties"].values())
    assert schema["properties"]["action"]["default"] == "list"
    assert schema["properties"]["tool_inputs"]["default"] == {}
    assert "required" not in schema


async def test_discovery_returns_names_descriptions_and_input_schemas(place: Place) -> None:
    async with opened(place) as gateway:
        listed = await gateway.call("mcp_api_ai_mcp", action="list")
    assert listed.value == [
        {"name": tool["name"], "description": tool["description"], "inputs": tool["inputSchema"]}
        for tool in (SEARCH, ANALYZE)
    ]


async def test_execution_runs_known_tools_in_sequence_without_a_list(place: Place) -> None:
    async with opened(place) as gateway:
        found = await gateway.execute("api_ai_mcp", "search", query="ML papers")
        judged = await gateway.execute("api_ai_mcp", "analyze", text="Paper 1")
    assert found.success
    assert judged.success
