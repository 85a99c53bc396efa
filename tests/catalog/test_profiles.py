"""Profiles: how a choice is read, and what it lists."""

from __future__ import annotations

import pytest
from inline_snapshot import snapshot

from trysquare import ConfigurationError, FixedToolset, Tool, tool
from trysquare.catalog.profiles import ProfileChoice, listed, parse_profiles
from trysquare.catalog.toolset import catalogued


async def _done() -> str:
    """Do nothing."""
    return "done"


def _tool(name: str, room: str, *profiles: str, pinned: bool = False) -> Tool:
    return tool(_done, name=name, room=room, profiles=frozenset(profiles), pinned=pinned)


TOOLSET = catalogued(
    FixedToolset(
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


def test_a_profile_of_one_room_leaves_the_others() -> None:
    assert _listed("bots=gateway") == ["story_tool", "status", "read_file"]


def test_search_in_one_room_brings_the_search_tools() -> None:
    assert _listed("bots=search") == ["status", "read_file", "find_tools", "call_tool"]


def test_whatever_is_listed_every_tool_is_found_by_name() -> None:
    assert all(TOOLSET.find(name) is not None for name in ("story_shape_write", "find_tools", "call_tool"))


def test_choices_are_read_in_order_and_the_later_wins() -> None:
    assert parse_profiles(["levels", " bots = full ", "gateway", "bots=search"]) == ProfileChoice(
        default="gateway", rooms={"bots": "search"}
    )
    assert parse_profiles([]) == ProfileChoice(default=None, rooms={})


def test_without_a_choice_servers_behind_the_gateway_show_one_tool_each_and_other_rooms_everything() -> None:
    unchosen = parse_profiles([])
    assert (unchosen.of_room("gateway"), unchosen.of_room("bots")) == ("levels", "full")
    assert parse_profiles(["full"]).of_room("gateway") == "full"
    assert parse_profiles(["gateway=search"]).of_room("gateway") == "search"


def test_a_room_of_ones_own_can_be_named() -> None:
    assert parse_profiles(["kitchen=levels"], rooms=["kitchen"]).of_room("kitchen") == "levels"


def _refused(choice: str) -> tuple[str, str | None]:
    with pytest.raises(ConfigurationError) as raised:
        parse_profiles([choice])
    assert raised.value.where == f"profile `{choice}`"
    return raised.value.message, raised.value.hint


def test_an_unknown_profile_names_the_nearest_and_all() -> None:
    assert _refused("level") == snapshot(
        (
            "There is no profile `level`. `levels` is meant, it seems.",
            "The profiles are `full`, `levels`, `gateway`, `search`.",
        )
    )
    assert _refused("") == snapshot(
        ("There is no profile ``.", "The profiles are `full`, `levels`, `gateway`, `search`.")
    )


def test_an_unknown_room_names_the_nearest_and_all() -> None:
    assert _refused("bot=levels") == snapshot(
        (
            "There is no room `bot`. `bots` is meant, it seems.",
            "The rooms are `tools`, `bots`, `gateway`, `debug`, `guide`, `workbench`, `agents`.",
        )
    )
    assert _refused("=full") == snapshot(
        ("There is no room ``.", "The rooms are `tools`, `bots`, `gateway`, `debug`, `guide`, `workbench`, `agents`.")
    )
