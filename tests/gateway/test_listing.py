from __future__ import annotations

from trysquare.core.result import dump_json
from trysquare.gateway import ServerConfig
from trysquare.gateway.arguments import CallBuilder, Detail
from trysquare.gateway.listing import MAX_CHARACTERS, listing, tool_listing
from trysquare.gateway.models import ConfigLocation, ToolDefinition

BUILDER = CallBuilder("mcp_big")
SERVER = ServerConfig(name="big", tool_name="mcp_big", transport="stdio", location=ConfigLocation(file="mcp.json"))


def _definitions(count: int) -> list[ToolDefinition]:
    schema = {"type": "object", "properties": {"path": {"type": "string", "description": "Where it lies, in full"}}}
    return [
        ToolDefinition(name=f"tool_{number}", description="Does one of many things.", input_schema=schema)
        for number in range(count)
    ]


def test_a_list_that_is_too_long_is_shortened_and_leads_to_the_rest() -> None:
    cases: list[tuple[int, Detail]] = [(400, "schemas"), (2_000, "signatures")]
    for count, detail in cases:
        shown = listing(SERVER, _definitions(count), detail, builder=BUILDER)
        value = shown.to_json()["value"]
        assert len(dump_json(value)) <= MAX_CHARACTERS
        assert len(value) == count
        assert "`tool_name`" in str(shown.instruction)


def test_a_list_of_names_that_is_too_long_goes_on_where_it_ended() -> None:
    definitions, names, offset = _definitions(5_000), list[str](), 0
    while True:
        shown = listing(SERVER, definitions, None, builder=BUILDER, offset=offset)
        names += shown.to_json()["value"]
        assert len(dump_json(shown.to_json()["value"])) <= MAX_CHARACTERS
        if shown.next is None:
            break
        offset = shown.next["arguments"]["tool_inputs"]["offset"]
        assert offset == len(names)
    assert names == [definition.name for definition in definitions]


def test_a_list_that_fits_is_given_as_it_was_asked_for() -> None:
    shown = listing(SERVER, _definitions(3), "schemas", builder=BUILDER)
    assert [one["inputs"]["type"] for one in shown.to_json()["value"]] == ["object"] * 3
    assert "whole" not in str(shown.instruction)


def test_one_tool_is_listed_with_its_full_definition_and_without_hidden_text() -> None:
    definition = ToolDefinition(
        name="look",
        description="Look\u200b at it.",
        output_schema={"type": "object"},
        annotations={"readOnlyHint": True},
    )
    [told] = tool_listing(SERVER, definition, "schemas").to_json()["value"]
    assert told == {
        "name": "look",
        "description": "Look at it.",
        "inputs": {"type": "object"},
        "outputs": {"type": "object"},
        "annotations": {"readOnlyHint": True},
    }


def test_a_server_without_tools_says_so() -> None:
    assert "`big`" in (listing(SERVER, [], "signatures", builder=BUILDER).message or "")
