"""A workflow bot through a real MCP client: the three levels of tools, and what each of them writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bots.served_bots import STORY_BOT, served
from trysquare.app import open_app
from trysquare.catalog import parse_profiles
from trysquare.server import build_server
from trysquare.settings import Settings


@pytest.mark.parametrize(("profile", "count"), [("full", 75), ("levels", 11), ("gateway", 4)])
async def test_story_bot_lists_as_many_tools_as_the_profile_promises(tmp_path: Path, profile: str, count: int) -> None:
    async with served(tmp_path, profile=[profile]) as bot:
        tools = (await bot.client.list_tools()).tools
    assert len(tools) == count
    assert all(len(tool.description or "") < 1_024 for tool in tools)


async def test_every_tool_is_callable_whatever_is_listed(tmp_path: Path) -> None:
    async with served(tmp_path, profile=["gateway"]) as bot:
        answer = await bot.call("shape_gather_context")
    assert answer["action"] == "gather_context"


async def test_continue_where_i_left_off(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        bot.write_state(
            current_behavior="story_bot.shape",
            current_action="story_bot.shape.gather_context",
            timestamp="2025-12-04T19:57:07.276186",
            completed_actions=[
                {"action_state": "story_bot.shape.initialize_project", "timestamp": "2025-12-04T19:57:07.029592"}
            ],
        )
        answer = await bot.call("tool")
        assert (answer["status"], answer["behavior"], answer["action"]) == ("completed", "shape", "gather_context")
        assert answer["data"]["instructions"]["guardrails"]["key_questions"]
        assert (answer["action_completed"], answer["action_state"]) == (False, "awaiting_close")
        assert bot.state()["current_action"] == "story_bot.shape.gather_context"
        assert bot.completed() == ["shape.initialize_project"]


async def test_jump_to_a_behavior(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        answer = await bot.call("discovery_tool")
        assert (answer["behavior"], answer["action"]) == ("discovery", "initialize_project")
        assert bot.state()["current_behavior"] == "story_bot.discovery"


async def test_jump_to_an_action(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        answer = await bot.call("exploration_gather_context")
        assert (answer["behavior"], answer["action"], answer["jump"]) == ("exploration", "gather_context", "ahead")
        state = bot.state()
        assert state["current_behavior"] == "story_bot.exploration"
        assert state["current_action"] == "story_bot.exploration.gather_context"
        assert state["completed_actions"] == []


async def test_close_the_current_action(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        await bot.call("shape_gather_context")
        answer = await bot.call("close_current_action")
        assert answer["status"] == "completed"
        assert (answer["completed_action"], answer["next_action"]) == ("gather_context", "decide_planning_criteria")
        assert answer["approval"] == "claimed"
        assert bot.completed() == ["shape.gather_context"]
        assert bot.state()["current_action"] == "story_bot.shape.decide_planning_criteria"


async def test_the_definitions_stay_within_their_budgets() -> None:
    from trysquare.catalog.descriptions import definition_tokens
    from trysquare.catalog.toolset import listed

    async with open_app(Settings.model_validate({"bot": [STORY_BOT]})) as app:
        build_server(app.toolset, app.serve_options())
        for profile, most in (("full", 7_300), ("levels", 1_460), ("gateway", 500)):
            assert sum(map(definition_tokens, listed(app.toolset, parse_profiles([profile])))) <= most
