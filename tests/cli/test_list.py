"""`trysquare list`."""

from __future__ import annotations

import re

from tests.cli.conftest import Run


def test_the_table_shows_each_tool_with_its_tokens_and_the_sum(run: Run) -> None:
    ran = run("list", "--tools", "demo_tools:tools")
    assert ran.code == 0
    without_costs = re.sub(r" {2,}", "  ", re.sub(r"\d+", "N", ran.out))
    tools, resources, total = (part.splitlines() for part in without_costs.split("\n\n"))
    assert tools == [
        "TOOL  CATEGORY  TOKENS  PURPOSE",
        "greet  example  N  Greet a person by name.",
        "add  tools  N  Add two numbers.",
        "remove  tools  N  Remove a thing.",
        "report  tools  N  Report twice, then finish.",
        "read_more  page_reader  N  Next page of a long answer: send the cursor that it gave.",
    ]
    assert [line.split("  ")[0] for line in resources] == [
        "RESOURCE",
        "trysquare://tools",
        "trysquare://results/{handle}",
        "trysquare://tools/{name}",
    ]
    assert "N tokens" in total[0]


def test_what_a_module_prints_goes_to_stderr(run: Run) -> None:
    ran = run("list", "--json", "--tools", "demo_tools:tools")
    assert ran.err == "printed while imported\n"
    assert [tool["name"] for tool in ran.json["tools"]] == ["greet", "add", "remove", "report", "read_more"]


def test_the_sum_is_the_sum_of_the_tools(run: Run) -> None:
    listing = run("list", "--json", "--tools", "demo_tools:tools").json
    assert listing["tokens"] == sum(tool["tokens"] for tool in listing["tools"])
    assert listing["callable"] == 7


def test_the_profile_chooses_what_is_listed(run: Run) -> None:
    listing = run("list", "--json", "--profile", "search", "--tools", "demo_tools:tools").json
    assert [tool["name"] for tool in listing["tools"]] == ["read_more", "find_tools", "call_tool"]


def test_all_shows_what_is_not_listed_too(run: Run) -> None:
    listing = run("list", "--json", "--all", "--tools", "demo_tools:tools").json
    assert {"greet", "find_tools"} <= {tool["name"] for tool in listing["tools"]}


def test_the_prefix_is_part_of_every_name(run: Run) -> None:
    listing = run("list", "--json", "--prefix", "demo", "--tools", "demo_tools:tools").json
    assert [tool["name"] for tool in listing["tools"]] == [
        "demo_greet",
        "demo_add",
        "demo_remove",
        "demo_report",
        "demo_read_more",
    ]


def test_an_empty_configuration_says_what_to_do(run: Run) -> None:
    ran = run("list")
    assert ran.code == 0
    assert "trysquare list server.py" in ran.out


def test_an_unknown_toolset_names_the_option(run: Run) -> None:
    ran = run("list", "--profile", "bts=full")
    assert ran.code == 2
    assert ran.err.startswith("trysquare: --profile: Unknown toolset `bts`.")
