"""Tools, prompts, resources and templates as the protocol lists them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inline_snapshot import snapshot
from mcp_types.methods import serialize_server_result

from trysquare import (
    CallContext,
    PromptMessage,
    Resource,
    ResourceContents,
    ResourceTemplate,
    Result,
    Text,
    prompt,
    tool,
)
from trysquare.server.convert import (
    completions_to_wire,
    messages_to_wire,
    prompt_to_wire,
    reading_to_wire,
    resource_to_wire,
    template_to_wire,
    tool_to_wire,
)


async def move(source: str, target: str) -> Result[str]:
    """Move a file."""
    return Result.ok(f"{source} {target}")


async def _read(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
    return ()


def _accepted(method: str, wire: dict[str, Any]) -> None:
    serialize_server_result(method, "2025-11-25", wire)
    modern = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **wire}
    serialize_server_result(method, "2026-07-28", modern)


def test_a_tool_tells_its_hints_version_and_end() -> None:
    made = tool(
        move, title="Move", read_only=False, destructive=True, idempotent=False, open_world=False,
        version="2", deprecated="Use `rename`.", meta={"example.com/x": 1, "trysquare/inner": 2},
    )  # fmt: skip
    wire = tool_to_wire(made, lambda shown: f"about {shown.name}")
    _accepted("tools/list", {"tools": [wire]})
    assert wire == snapshot(
        {
            "name": "move",
            "title": "Move",
            "description": "about move",
            "inputSchema": {
                "type": "object",
                "properties": {"source": {"type": "string"}, "target": {"type": "string"}},
                "required": ["source", "target"],
                "additionalProperties": False,
            },
            "outputSchema": {
                "type": "object",
                "properties": {"result": {"type": "string"}},
                "required": ["result"],
                "x-fastmcp-wrap-result": True,
            },
            "annotations": {
                "readOnlyHint": False,
                "destructiveHint": True,
                "idempotentHint": False,
                "openWorldHint": False,
            },
            "_meta": {"example.com/x": 1, "trysquare/version": "2", "trysquare/deprecated": "Use `rename`."},
        }
    )


def test_a_plain_tool_tells_no_more_than_it_knows() -> None:
    assert set(tool_to_wire(tool(move), lambda _: "")) == {"name", "description", "inputSchema", "outputSchema"}


def test_what_a_tool_returns_is_its_output_schema_unless_it_is_left_out() -> None:
    wire = tool_to_wire(tool(move), lambda _: "")
    assert wire["outputSchema"]["properties"] == {"result": {"type": "string"}}
    _accepted("tools/list", {"tools": [wire]})
    assert "outputSchema" not in tool_to_wire(tool(move, output_schema=False), lambda _: "")


async def greet(name: str, tone: str = "warm") -> str:
    """Greet somebody.

    Args:
        name: Whom to greet
    """
    return f"{name} {tone}"


def test_a_prompt_is_listed_and_rendered() -> None:
    made = prompt(greet, title="Greeting")
    wire = prompt_to_wire(made, lambda shown: shown.description)
    assert wire == snapshot(
        {
            "name": "greet",
            "title": "Greeting",
            "description": "Greet somebody.",
            "arguments": [
                {"name": "name", "description": "Whom to greet", "required": True},
                {"name": "tone", "required": False},
            ],
        }
    )
    _accepted("prompts/list", {"prompts": [wire]})
    rendered = messages_to_wire(made, [PromptMessage(content=Text(text="hi \ud800"), role="assistant")])
    assert rendered["messages"] == [{"role": "assistant", "content": {"type": "text", "text": "hi �"}}]
    _accepted("prompts/get", rendered)


def test_resources_and_templates_are_listed_and_read() -> None:
    resource = Resource(uri="a:b", name="b", read=_read, title="B", description="d", mime_type="text/plain", size=3)
    template = ResourceTemplate(uri_template="a:{x}", name="x", read=_read, mime_type="text/plain")
    assert resource_to_wire(resource) == snapshot(
        {"uri": "a:b", "name": "b", "title": "B", "description": "d", "mimeType": "text/plain", "size": 3}
    )
    assert template_to_wire(template) == snapshot({"uriTemplate": "a:{x}", "name": "x", "mimeType": "text/plain"})
    _accepted("resources/list", {"resources": [resource_to_wire(resource)]})
    _accepted("resources/templates/list", {"resourceTemplates": [template_to_wire(template)]})
    reading = reading_to_wire([ResourceContents(uri="a:b", text="t"), ResourceContents(uri="a:b", blob="aGk=")])
    _accepted("resources/read", reading)


def test_no_more_than_a_hundred_completions_are_sent() -> None:
    wire = completions_to_wire([str(number) for number in range(250)])
    assert (len(wire["completion"]["values"]), wire["completion"]["total"]) == (100, 250)
    assert wire["completion"]["hasMore"] is True
    assert completions_to_wire(())["completion"] == {"values": [], "total": 0, "hasMore": False}
