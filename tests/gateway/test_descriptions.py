from __future__ import annotations

from trysquare.catalog.descriptions import COMPACT_PURPOSE
from trysquare.gateway import InvalidServer, ServerConfig
from trysquare.gateway.listing import gateway_description, server_description
from trysquare.gateway.models import ConfigLocation

PLACE = ConfigLocation(file="mcp.json", line=4)
HUB = ServerConfig(name="code hub", tool_name="mcp_code_hub", transport="http", location=PLACE)
BAD = InvalidServer(name="bad", tool_name="mcp_bad", reason="It has neither a command nor a url.", location=PLACE)


def test_a_description_names_the_server_its_transport_and_what_it_has() -> None:
    described = server_description(HUB, ["create_issue", "list_issues"])
    assert described == "MCP server 'code hub' (http) - provides access to multiple tools: create_issue, list_issues."


def test_the_configured_description_stands_before_the_names_and_long_lists_are_cut() -> None:
    about = ServerConfig(
        name="hub",
        tool_name="mcp_hub",
        transport="stdio",
        location=PLACE,
        description="Issues and pull requests.\nMore.",
    )
    told = server_description(about, [f"tool_number_{number}" for number in range(40)])
    assert "multiple tools. Issues and pull requests: tool_number_0, tool_number_1, " in told
    assert told.endswith("more.")
    assert len(told) < 300


def test_a_broken_entry_says_what_is_wrong_and_where() -> None:
    description = server_description(BAD, [])
    for token in ("'bad'", BAD.reason.rstrip("."), "(mcp.json:4)"):
        assert token in description


def test_hidden_characters_of_names_are_not_shown() -> None:
    assert "a\\u202eb" not in server_description(HUB, ["a\u202eb"]).encode("unicode_escape").decode()


def test_the_tool_over_all_names_every_server_within_the_limit() -> None:
    few = gateway_description([HUB, BAD])
    assert few.splitlines()[1:] == ["- code hub (http)", "- bad: invalid configuration"]
    many = gateway_description([HUB] * 500)
    assert len(many) <= COMPACT_PURPOSE
    assert "code hub, code hub" in many
