from __future__ import annotations

from inline_snapshot import snapshot

from trysquare.catalog.describe import COMPACT_PURPOSE
from trysquare.gateway.descriptions import gateway_description, server_description
from trysquare.gateway.server import BrokenServer, Place, ServerConfig

PLACE = Place(file="mcp.json", line=4)
HUB = ServerConfig(name="code hub", tool_name="mcp_code_hub", transport="http", place=PLACE)
BAD = BrokenServer(name="bad", tool_name="mcp_bad", reason="It has neither a command nor a url.", place=PLACE)


def test_a_description_names_the_server_its_transport_and_what_it_has() -> None:
    assert server_description(HUB, ["create_issue", "list_issues"]) == snapshot("""\
MCP server 'code hub' (http): create_issue, list_issues.
list shows its tools, execute runs one, read pages a large result.\
""")


def test_what_a_person_wrote_stands_before_the_names_and_long_lists_are_cut() -> None:
    about = ServerConfig(
        name="hub", tool_name="mcp_hub", transport="stdio", place=PLACE, description="Issues and pull requests.\nMore."
    )
    told = server_description(about, [f"tool_number_{number}" for number in range(40)])
    assert told.startswith("MCP server 'hub' (stdio): Issues and pull requests: tool_number_0, tool_number_1, ")
    assert "more.\n" in told
    assert len(told) < 300


def test_a_broken_entry_says_what_is_wrong_and_where() -> None:
    assert server_description(BAD, []) == snapshot(
        "MCP server 'bad' cannot be used: It has neither a command nor a url (mcp.json:4)."
    )


def test_hidden_characters_of_names_are_not_shown() -> None:
    assert "a\\u202eb" not in server_description(HUB, ["a\u202eb"]).encode("unicode_escape").decode()


def test_the_tool_over_all_names_every_server_as_long_as_there_is_room() -> None:
    few = gateway_description([HUB, BAD])
    assert few.splitlines()[1:] == ["- code hub (http)", "- bad: cannot be used"]
    many = gateway_description([HUB] * 500)
    assert len(many) <= COMPACT_PURPOSE
    assert "code hub, code hub" in many
