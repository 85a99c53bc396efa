"""Slash commands of a bot, what its server says of the work, and the parameters that a model sees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bots.bot_folders import write_bot
from tests.bots.served_bots import BotClient, served

MODES = ("legacy", "auto")


async def said(bot: BotClient, prompt: str, **arguments: str) -> str:
    found = await bot.client.get_prompt(prompt, arguments)
    content: Any = found.messages[0].content
    return content.text


def sent(text: str) -> tuple[str, dict[str, Any]]:
    """The call that a prompt asks for."""
    tool = text.split("Call `")[1].split("`")[0]
    arguments, _ = json.JSONDecoder().raw_decode(text.split("` with ")[1])
    return tool, arguments


async def test_every_level_and_every_decision_has_a_prompt(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        names = {prompt.name for prompt in (await bot.client.list_prompts()).prompts}
    levels = {"story_bot", "story_bot_shape", "story_bot_code"}
    assert levels | {f"story_bot_{each}" for each in ("status", "close", "reject", "skip")} <= names
    assert len(names) == 1 + 8 + 4


async def test_what_a_prompt_asks_for_can_be_sent_as_it_stands(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        await bot.call("tool", confirm=True)
        asked = [
            (await said(bot, "story_bot"), "gather_context"),
            (await said(bot, "story_bot_discovery", action="build_knowledge"), "build_knowledge"),
            (await said(bot, "story_bot_shape"), "gather_context"),
            (await said(bot, "story_bot_shape", run="b"), "initialize_project"),
        ]
        for text, action in asked:
            tool, arguments = sent(text)
            answer = await bot.send({"tool": tool, "arguments": arguments})
            assert answer["action"] == action
        for word in ("reject", "skip"):
            tool, arguments = sent(await said(bot, f"story_bot_{word}", reason="Not now"))
            answer = await bot.send({"tool": tool, "arguments": arguments})
            assert answer["status"] == ("rejected" if word == "reject" else "completed")
        tool, arguments = sent(await said(bot, "story_bot_close"))
        closed = await bot.send({"tool": tool, "arguments": arguments})
        assert closed["action_completed"]


async def test_an_action_is_completed_and_an_unknown_one_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        with pytest.raises(Exception, match="Did you mean `gather_context`"):
            await said(bot, "story_bot_shape", action="gather_contxt")


@pytest.mark.parametrize("mode", MODES)
async def test_the_server_says_where_the_work_stands(tmp_path: Path, mode: str) -> None:
    async with served(tmp_path, mode=mode) as bot:
        before = bot.client.instructions or ""
        await bot.call("tool", confirm=True)
        await bot.call("shape_tool", run="hotfix")
    async with served(tmp_path, mode=mode) as bot:
        after = bot.client.instructions or ""
    assert "has not begun" in before
    assert "is at shape.gather_context; 1 of 56 actions are done" in after
    assert "hotfix" in after
    assert "story_bot_close_current_action" in after


async def test_in_every_profile_a_tool_is_listed_that_opens_any_action(tmp_path: Path) -> None:
    async with served(tmp_path, profile=("bots=levels",)) as bot:
        listed = {tool.name: tool for tool in (await bot.client.list_tools()).tools}
        parameters = listed["story_bot_shape_tool"].input_schema["properties"]["parameters"]["properties"]
        assert "build_knowledge" in parameters["action"]["enum"]
        await bot.call("tool", confirm=True)
        opened = await bot.call("shape_tool", action="build_knowledge")
        wrong = await bot.call("shape_tool", action="build_knowlege")
    assert (opened["action"], opened["jump"]) == ("build_knowledge", "ahead")
    assert "Did you mean `build_knowledge`" in wrong["error"]["message"]


async def test_every_parameter_of_a_listed_tool_is_described(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        tools = (await bot.client.list_tools()).tools
    for tool in tools:
        parameters = tool.input_schema["properties"]["parameters"]
        assert all(each["description"] for each in parameters.get("properties", {}).values()), tool.name
    gather = next(tool for tool in tools if tool.name == "story_bot_shape_gather_context")
    assert {"answers", "evidence"} <= gather.input_schema["properties"]["parameters"]["properties"].keys()


async def test_a_behavior_that_has_the_name_of_a_command_has_a_prompt_too(tmp_path: Path) -> None:
    folder = tmp_path / "bot"
    config = {"name": "mini", "behaviors": ["shape", "code", "status"]}
    write_bot(
        folder, {"bot_config.json": config, "behaviors/9_status/instructions.json": {"instructions": ["Report."]}}
    )
    async with served(tmp_path, bot=folder, name="mini") as bot:
        names = {prompt.name for prompt in (await bot.client.list_prompts()).prompts}
    assert {"mini_status", "mini_status_work"} <= names
