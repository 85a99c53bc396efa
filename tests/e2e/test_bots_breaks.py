"""What broke in bots of this kind before: each step through a real client, as a person would meet it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.bots.bot_folders import write_bot
from tests.bots.served_bots import served


async def test_every_tool_carries_its_trigger_patterns(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        tools = {tool.name: tool.description or "" for tool in (await bot.client.list_tools()).tools}
    action = tools["story_bot_shape_gather_context"]
    assert "\nTrigger patterns: " in action
    assert len(action.partition("Trigger patterns: ")[2].split(", ")) <= 5
    assert "Trigger patterns: " in tools["story_bot_tool"]
    assert "Trigger patterns: " in tools["story_bot_shape_tool"]
    assert max(map(len, tools)) <= 64


async def test_a_jump_is_not_undone_by_the_bot_tool(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        await bot.call("discovery_build_knowledge")
        answer = await bot.call("tool")
        assert (answer["behavior"], answer["action"]) == ("discovery", "build_knowledge")
        assert bot.state()["current_action"] == "story_bot.discovery.build_knowledge"


async def test_the_last_action_of_a_behavior_stays_completed(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        await bot.call("shape_validate_rules")
        closed = await bot.call("close_current_action")
        assert (closed["completed_behavior"], closed["next_behavior"]) == ("shape", "prioritization")
        assert bot.completed() == ["shape.validate_rules"]
        assert bot.state()["current_action"] == "story_bot.prioritization.initialize_project"


async def test_a_second_close_is_told_that_nobody_saw_what_it_closes(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        await bot.call("shape_gather_context")
        assert "delivered" not in await bot.call("close_current_action")
        second = await bot.call("close_current_action")
        assert second["delivered"] is False
        assert bot.state()["completed_actions"][-1]["delivered"] is False


async def test_a_reopened_action_stays_open_until_it_is_closed_again(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        await bot.call("shape_gather_context")
        await bot.call("close_current_action")
        reopened = await bot.call("shape_gather_context")
        assert reopened["jump"] == "reopened"
        for _ in range(2):
            assert (await bot.call("shape_tool"))["action"] == "gather_context"
        assert "shape.gather_context" not in bot.completed()


async def test_actions_deliver_their_content_and_name_what_is_missing(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        built = await bot.call("shape_build_knowledge")
        planned = await bot.call("shape_decide_planning_criteria")
    assert any(name.startswith("knowledge:") for name in built["data"]["instructions"])
    assert planned["data"]["instructions"]["guardrails"]["decision_criteria"]
    project, folder = tmp_path / "project", write_bot(tmp_path / "bot")
    project.mkdir()
    async with served(project, bot=folder, name="mini") as bot:
        bare = await bot.call("shape_build_knowledge")
    assert "behaviors/1_shape/content" in bare["missing"]


async def test_a_truncated_state_file_is_set_aside_and_nothing_is_lost(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        await bot.call("shape_gather_context")
        await bot.call("close_current_action")
        _truncate(tmp_path / "workflow_state.json")
        answer = await bot.call("tool")
        assert answer["recovered"]
        assert answer["action"] == "decide_planning_criteria"
        assert bot.completed() == ["shape.gather_context"]
        assert len(list(_set_aside(tmp_path))) == 1


def _truncate(file: Path) -> None:
    file.write_text(file.read_text(encoding="utf-8")[:40], encoding="utf-8")


def _set_aside(project: Path) -> list[Path]:
    return list(project.glob("workflow_state.json.corrupt-*"))


async def test_deleting_the_state_file_begins_again(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        await bot.call("shape_gather_context")
        _remove(tmp_path / "workflow_state.json")
        answer = await bot.call("tool")
        assert (answer["behavior"], answer["action"]) == ("shape", "initialize_project")


def _remove(file: Path) -> None:
    file.unlink()


async def test_parameters_pass_through_all_levels(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        confirmed = await bot.call("shape_tool", confirm=True)
        assert confirmed["action_completed"] is True
        answered = await bot.call("tool", answers={"Who cooks?": "Ada"})
        assert answered["data"]["saved"] == {"answers": 1}
        decided = await bot.call("shape_decide_planning_criteria", decisions={"depth": "deep"}, fresh=True)
        assert decided["data"]["instructions"]["clarifications"]["answers"] == {"Who cooks?": "Ada"}
    saved = json.loads(_read(tmp_path / "docs/stories/clarification.json"))
    assert saved["shape"]["answers"] == {"Who cooks?": "Ada"}


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


async def test_answers_are_offered_to_later_behaviors(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        await bot.call("shape_gather_context", answers={"Who cooks?": "Ada"})
        later = await bot.call("discovery_build_knowledge")
        assert later["data"]["instructions"]["earlier_clarifications"]["shape"]["answers"] == {"Who cooks?": "Ada"}


async def test_a_run_goes_on_in_another_server_and_another_client(tmp_path: Path) -> None:
    async with served(tmp_path, mode="legacy") as bot:
        await bot.call("shape_gather_context")
        await bot.call("close_current_action")
    async with served(tmp_path, mode="2026-07-28") as bot:
        answer = await bot.call("tool")
        assert (answer["action"], answer["data"]["instructions"]["base_instructions"] != []) == (
            "decide_planning_criteria",
            True,
        )
