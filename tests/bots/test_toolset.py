"""The toolset of a bot: what a reload changes, and what restart does about the process."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.bots.bot_folders import write_bot
from tests.bots.served_bots import served
from trysquare import ConfigurationError, call_tool
from trysquare.bots import BotConfig, open_bot
from trysquare.bots.provider import BotToolset
from trysquare.bots.workflow.runs import open_workflows


@asynccontextmanager
async def opened(tmp_path: Path, left: list[str] | None = None) -> AsyncGenerator[BotToolset]:
    """The minimal bot, which nobody watches."""
    project = tmp_path / "project"
    project.mkdir()
    config = BotConfig(folder=write_bot(tmp_path / "bot"), project=project, project_named=True, watch=False)
    ended = left if left is not None else []
    async with open_bot(
        config, open_store=lambda root: open_workflows(None, root), approvals=None, leave=lambda: ended.append("left")
    ) as toolset:
        yield toolset


def change_goal(folder: Path) -> None:
    """Give a behavior another goal."""
    (folder / "behaviors/1_shape/instructions.json").write_text(json.dumps({"goal": "Another."}), encoding="utf-8")


def add_behavior(folder: Path) -> None:
    """Give the bot one more behavior."""
    added = folder / "behaviors/3_ship"
    added.mkdir()
    (added / "instructions.json").write_text(json.dumps({"goal": "It is out."}), encoding="utf-8")
    config = {"name": "mini", "behaviors": ["shape", "code", "ship"]}
    (folder / "bot_config.json").write_text(json.dumps(config), encoding="utf-8")


async def test_restart_names_the_parts_and_files_that_changed(tmp_path: Path) -> None:
    async with opened(tmp_path) as toolset:
        change_goal(tmp_path / "bot")
        told = await call_tool(toolset, "mini_restart_server")
    assert told.fields["changed"] == ["behavior shape"]
    assert told.fields["files"]["changed"] == ["behaviors/1_shape/instructions.json"]


async def test_a_new_behavior_brings_its_tools_and_the_listeners_hear_of_it(tmp_path: Path) -> None:
    heard: list[str] = []
    async with opened(tmp_path) as toolset:
        toolset.subscribe(heard.append)
        before = len(toolset.tools())
        add_behavior(tmp_path / "bot")
        await call_tool(toolset, "mini_restart_server")
        assert len(toolset.tools()) == before + 1 + 4
        assert (await call_tool(toolset, "mini_ship_tool")).fields["behavior"] == "ship"
    assert heard == ["tools", "prompts"]


async def test_a_restart_that_finds_nothing_new_tells_nobody(tmp_path: Path) -> None:
    heard: list[str] = []
    async with opened(tmp_path) as toolset:
        toolset.subscribe(heard.append)
        told = await call_tool(toolset, "mini_restart_server")
    assert (told.fields["changed"], heard) == ([], [])


async def test_the_process_ends_only_when_that_was_asked_for_and_the_answer_is_out(tmp_path: Path) -> None:
    import asyncio

    left: list[str] = []
    async with opened(tmp_path, left) as toolset:
        await asyncio.create_task(call_tool(toolset, "mini_restart_server"))
        assert left == []
        answering = asyncio.create_task(call_tool(toolset, "mini_restart_server", {"parameters": {"hard": True}}))
        told = await answering
        await asyncio.sleep(0)
    assert (told.fields["status"], left) == ("restarting", ["left"])


async def test_unknown_folders_and_wrong_parameters_are_refused_in_words(tmp_path: Path) -> None:
    async with opened(tmp_path) as toolset:
        for parameters, word in (
            ({"project": "nowhere"}, "nowhere"),
            ({"run": 7}, "`run`"),
            ({"run": "../x"}, "run name"),
            ({"scope": {"stry": ["x"]}}, "`stry`"),
            ({"confirm": 3}, "`confirm`"),
            ({"answers": ["x"]}, "`answers`"),
        ):
            told = await call_tool(toolset, "mini_shape_gather_context", {"parameters": parameters})
            assert not told.success
            assert word in (told.error or "")


async def test_parameters_may_be_top_level_or_in_a_text(tmp_path: Path) -> None:
    async with opened(tmp_path) as toolset:
        for arguments in ({"run": "one"}, {"parameters": '{"run": "one"}'}, {"parameters": {"run": "one"}}):
            told = await call_tool(toolset, "mini_shape_gather_context", arguments)
            assert told.fields["run"] == "one"
        twice = await call_tool(toolset, "mini_tool", {"run": "one", "parameters": {"run": "two"}})
        assert "two values" in (twice.error or "")


async def test_a_bot_of_which_a_rule_misses_its_own_example_is_not_served(tmp_path: Path) -> None:
    rule = {
        "description": "No hedging.",
        "scanner": {"kind": "regex", "pattern": "maybe", "applies_to": "story.name"},
        "do": {"examples": ["Book a table"]},
        "dont": {"examples": ["Perhaps book a table"]},
    }
    write_bot(tmp_path / "bot", {"behaviors/1_shape/3_rules/sure.json": rule})
    with pytest.raises(ConfigurationError, match=r"3_rules/sure\.json: .*don't example"):
        async with served(tmp_path, bot=tmp_path / "bot", name="mini"):
            raise AssertionError


async def test_a_reload_that_brings_a_rule_which_misses_its_own_example_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as toolset:
        rule = {
            "description": "No hedging.",
            "scanner": {"kind": "regex", "pattern": "maybe", "applies_to": "story.name"},
            "dont": {"examples": ["Perhaps book a table"]},
        }
        write_bot(tmp_path / "bot", {"behaviors/1_shape/3_rules/sure.json": rule})
        told = await call_tool(toolset, "mini_restart_server")
        assert told.code == "CONFIG_INVALID"
        assert "sure.json" in str(told.error)
        assert toolset.bot.definition.all_rules == ()


async def test_a_call_that_found_the_workflow_complete_opens_nothing_when_it_is_sent_again(tmp_path: Path) -> None:
    file = tmp_path / "project" / "workflow_state.json"
    async with opened(tmp_path) as toolset:
        await call_tool(toolset, "mini_tool", {"parameters": {"confirm": True}})
        state = json.loads(file.read_text(encoding="utf-8"))
        file.write_text(json.dumps({**state, "workflow_complete": True}), encoding="utf-8")
        first = await call_tool(toolset, "mini_tool", {"parameters": {"request_key": "k1"}})
        file.write_text(json.dumps(state), encoding="utf-8")
        again = await call_tool(toolset, "mini_tool", {"parameters": {"request_key": "k1"}})
        other = await call_tool(toolset, "mini_tool", {"parameters": {"request_key": "k2"}})
    # The file says that the end was reached; what is open makes it no complete workflow.
    assert first.fields["workflow_complete"] is False
    assert again.fields["workflow_complete"] is False
    assert "workflow_complete" not in other.fields


async def test_close_lists_its_parameters_in_its_schema_and_in_its_full_description(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        listed = {tool.name: tool for tool in (await bot.client.list_tools()).tools}
        parameters = listed["story_bot_close_current_action"].input_schema["properties"]["parameters"]
        page = await bot.client.read_resource("trysquare://tools/story_bot_close_current_action")
        forwarding = await bot.client.read_resource("trysquare://tools/story_bot_shape_gather_context")
    text = str(page.contents[0].model_dump()["text"])
    assert parameters["additionalProperties"] is False
    for name in ("reject", "skip", "reason", "expected_action", "request_key", "run", "project"):
        assert parameters["properties"][name]["description"]
        assert f"`{name}`" in text
    assert "`answers`" in str(forwarding.contents[0].model_dump()["text"])


async def test_what_belongs_to_another_action_is_refused_and_not_lost(tmp_path: Path) -> None:
    async with opened(tmp_path) as toolset:
        await call_tool(toolset, "mini_tool", {"parameters": {"confirm": True}})
        told = await call_tool(toolset, "mini_tool", {"parameters": {"decisions": {"depth": "thin"}}})
        assert told.code == "VALIDATION_UNKNOWN_PARAM"
        assert not (tmp_path / "project" / "docs").exists()
        kept = await call_tool(toolset, "mini_tool", {"parameters": {"answers": {"Who?": "Guests"}}})
        assert kept.success
