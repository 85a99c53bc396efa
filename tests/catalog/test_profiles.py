"""Profiles: how a choice is read, and what it lists."""

from __future__ import annotations

import pytest

from trysquare import ConfigurationError, StaticToolset, Tool, tool
from trysquare.catalog import ProfileChoice, parse_profiles, with_catalog
from trysquare.catalog.toolset import listed


async def _done() -> str:
    """Do nothing."""
    return "done"


def _tool(name: str, toolset: str, *profiles: str, pinned: bool = False) -> Tool:
    return tool(_done, name=name, toolset=toolset, profiles=frozenset(profiles), pinned=pinned)


TOOLSET = with_catalog(
    StaticToolset(
        [
            _tool("story_shape_write", "bots", "full"),
            _tool("story_shape", "bots", "full", "levels"),
            _tool("story_tool", "bots", "full", "levels", "gateway"),
            _tool("status", "bots", "full", pinned=True),
            _tool("read_file", "workbench", "full", "levels", "gateway"),
        ]
    )
)


def _listed(*choices: str) -> list[str]:
    return [found.name for found in listed(TOOLSET, parse_profiles(choices))]


def test_without_a_choice_everything_but_the_search_tools_is_listed() -> None:
    assert _listed() == ["story_shape_write", "story_shape", "story_tool", "status", "read_file"]


def test_a_profile_lists_the_tools_that_belong_to_it_and_the_pinned_ones() -> None:
    assert _listed("levels") == ["story_shape", "story_tool", "status", "read_file"]
    assert _listed("gateway") == ["story_tool", "status", "read_file"]


def test_search_lists_the_search_tools_and_the_pinned_ones() -> None:
    assert _listed("search") == ["status", "find_tools", "call_tool"]


def test_a_profile_of_one_toolset_leaves_the_others() -> None:
    assert _listed("bots=gateway") == ["story_tool", "status", "read_file"]


def test_search_in_one_toolset_brings_the_search_tools() -> None:
    assert _listed("bots=search") == ["status", "read_file", "find_tools", "call_tool"]


def test_whatever_is_listed_every_tool_is_found_by_name() -> None:
    assert all(TOOLSET.find(name) is not None for name in ("story_shape_write", "find_tools", "call_tool"))


def test_choices_are_read_in_order_and_the_later_wins() -> None:
    assert parse_profiles(["levels", " bots = full ", "gateway", "bots=search"]) == ProfileChoice(
        default="gateway", toolsets={"bots": "search"}
    )
    assert parse_profiles([]) == ProfileChoice(default=None, toolsets={})


def test_without_a_choice_servers_behind_the_gateway_show_one_tool_each_and_other_toolsets_everything() -> None:
    unchosen = parse_profiles([])
    assert (unchosen.of_toolset("gateway"), unchosen.of_toolset("bots")) == ("levels", "full")
    assert parse_profiles(["full"]).of_toolset("gateway") == "full"
    assert parse_profiles(["gateway=search"]).of_toolset("gateway") == "search"


def test_a_toolset_of_ones_own_can_be_named() -> None:
    assert parse_profiles(["kitchen=levels"], toolsets=["kitchen"]).of_toolset("kitchen") == "levels"


def _refused(choice: str) -> tuple[str, str | None]:
    with pytest.raises(ConfigurationError) as raised:
        parse_profiles([choice])
    assert raised.value.where == f"profile `{choice}`"
    return raised.value.message, raised.value.hint


@pytest.mark.parametrize(("choice", "nearest"), [("level", "`levels`"), ("bot=levels", "`bots`")])
def test_an_unknown_profile_or_toolset_names_the_nearest_and_all(choice: str, nearest: str) -> None:
    message, hint = _refused(choice)
    assert nearest in message
    assert nearest in str(hint)


@pytest.mark.parametrize("choice", ["", "=full"])
def test_an_empty_name_is_refused(choice: str) -> None:
    _, hint = _refused(choice)
    assert hint
