"""The requirements of the specification of bots: three levels of tools, state, completion, and close.

`ROWS` names a test for every requirement, here or elsewhere; the examples of the specification are here as they stand.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from tests.bots.bot_folders import write_bot
from tests.bots.served_bots import BotClient, served

ROOT = Path(__file__).parents[2]
MODES = pytest.mark.parametrize("mode", ["legacy", "auto"])
EXAMPLE_STATE: dict[str, Any] = {
    "current_behavior": "story_bot.shape",
    "current_action": "story_bot.shape.gather_context",
    "timestamp": "2025-12-04T19:57:07.276186",
    "completed_actions": [
        {"action_state": "story_bot.shape.initialize_project", "timestamp": "2025-12-04T19:57:07.029592"}
    ],
}
EXAMPLE_TRIGGERS = {"trigger_patterns": ["gather context", "clarify requirements", "ask questions"]}


def copies(project: Path, kind: str) -> list[str]:
    """What was saved beside the state file."""
    return [each.read_text(encoding="utf-8") for each in project.glob(f"workflow_state.json.{kind}-*")]


async def open_example(bot: BotClient) -> None:
    bot.write_state(**EXAMPLE_STATE)


@MODES
async def test_the_bot_tool_goes_to_the_stored_behavior_and_action(tmp_path: Path, mode: str) -> None:
    async with served(tmp_path, mode=mode) as bot:
        assert (await bot.call("tool"))["action"] == "initialize_project"
        await open_example(bot)
        answer = await bot.call("tool")
    assert (answer["status"], answer["behavior"], answer["action"]) == ("completed", "shape", "gather_context")
    assert answer["data"]["instructions"]
    assert answer["action_completed"] is False


async def test_a_behavior_tool_goes_to_its_own_action_and_is_written(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        await open_example(bot)
        answer = await bot.call("discovery_tool")
        assert (answer["behavior"], answer["action"]) == ("discovery", "initialize_project")
        assert bot.state()["current_behavior"] == "story_bot.discovery"
        assert (await bot.call("shape_tool"))["action"] == "gather_context"
        assert (await bot.call("discovery_tool"))["action"] == "gather_context"


async def test_an_action_tool_opens_it_and_neither_completes_nor_moves_on(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        await open_example(bot)
        answer = await bot.call("exploration_gather_context", answers={"Who?": "Guests"})
        state = bot.state()
        assert (answer["action"], answer["jump"], answer["action_completed"]) == ("gather_context", "ahead", False)
        assert state["current_behavior"] == "story_bot.exploration"
        assert state["current_action"] == "story_bot.exploration.gather_context"
        assert bot.completed() == ["shape.initialize_project"]
        assert "Guests" in json.dumps(answer["data"])
        again = await bot.call("tool")
        assert (again["behavior"], again["action"]) == ("exploration", "gather_context")


async def test_a_call_sees_what_another_process_wrote_in_between(tmp_path: Path) -> None:
    async with served(tmp_path) as first, served(tmp_path) as second:
        await open_example(first)
        await first.call("tool")
        await second.call("close_current_action")
        assert (await first.call("tool"))["action"] == "decide_planning_criteria"
        first.write_state(**EXAMPLE_STATE)
        assert (await second.call("tool"))["action"] == "gather_context"
        (tmp_path / "workflow_state.json").unlink()
        assert (await first.call("tool"))["action"] == "initialize_project"


@pytest.mark.parametrize(
    ("change", "current"),
    [
        ({}, "gather_context"),
        ({"current_action": None}, "gather_context"),
        ({"current_action": "story_bot.shape.nothing"}, "gather_context"),
        ({"current_action": "other_bot.shape.render_output"}, "gather_context"),
        ({"current_action": "story_bot.shape.render_output"}, "render_output"),
        (
            {"current_action": "story_bot.shape.initialize_project", "timestamp": "2025-12-04T19:57:00"},
            "gather_context",
        ),
        ({"current_action": None, "current_behavior": None, "completed_actions": []}, "initialize_project"),
    ],
)
async def test_the_pointer_comes_first_then_the_completions_then_the_first_action(
    tmp_path: Path, change: dict[str, Any], current: str
) -> None:
    async with served(tmp_path) as bot:
        await bot.call("tool", confirm=True)
        bot.write_state(**{name: value for name, value in {**EXAMPLE_STATE, **change}.items() if value is not None})
        assert (await bot.call("tool", part="*"))["action"] == current


async def test_a_completion_of_the_last_action_after_the_pointer_ends_the_workflow(tmp_path: Path) -> None:
    last = "story_bot.code.validate_rules"
    async with served(tmp_path) as bot:
        await bot.call("tool", confirm=True)
        done = [{"action_state": last, "timestamp": "2025-12-04T20:00:00"}]
        bot.write_state(**{**EXAMPLE_STATE, "current_action": last, "completed_actions": done})
        ended = await bot.call("tool")
        assert ended["workflow_complete"] is False
        assert ended["open_count"] == 55
        assert bot.state()["workflow_ended"] is True


async def test_what_a_hand_added_to_the_file_is_kept_beside_it(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        await open_example(bot)
        bot.write_state(**EXAMPLE_STATE, note="mine")
        answer = await bot.call("tool")
        assert "note" in answer["inconsistent"][0]
        [copy] = copies(tmp_path, "refused")
        assert json.loads(copy)["note"] == "mine"
        bot.write_state(**{**EXAMPLE_STATE, "completed_actions": "x"})
        assert "completed_actions" in (await bot.call("tool"))["recovered"][0]
        assert len(copies(tmp_path, "corrupt")) == 1


@MODES
async def test_the_example_of_the_test_client(tmp_path: Path, mode: str) -> None:
    async with served(tmp_path, mode=mode, named=False) as bot:
        assert (await bot.call("tool"))["action"] == "initialize_project"
        closed = await bot.call("close_current_action")
        assert (closed["status"], closed["completed_action"]) == ("completed", "initialize_project")
        assert closed["next_action"] == "gather_context"


async def test_the_example_of_a_complete_workflow(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        await bot.call("shape_initialize_project", confirm=True)
        await bot.call("shape_tool")
        closed = await bot.call("close_current_action", expected_action="gather_context")
        assert closed["next_action"] == "decide_planning_criteria"
        await bot.call("discovery_gather_context")
        assert bot.state()["current_action"] == "story_bot.discovery.gather_context"


async def test_close_names_the_end_of_a_behavior_and_of_the_bot(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        await open_example(bot)
        await bot.call("shape_validate_rules")
        closed = await bot.call("close_current_action")
        assert (closed["completed_behavior"], closed["next_behavior"]) == ("shape", "prioritization")
        await bot.call("code_validate_rules")
        refused = await bot.call("close_current_action")
        assert refused["error"]["code"] == "STATE_CONFLICT", "nothing was built, so the rules are not clean"
        ended = await bot.call("close_current_action", skip=True, reason="Nothing was built")
        assert ended["next_action"] is None
        assert (ended["workflow_complete"], ended["open_count"]) == (False, 56 - 3)
        assert bot.completed()[-1] == "code.validate_rules"


async def test_an_action_is_skipped_with_a_reason_or_jumped_over(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        await open_example(bot)
        skipped = await bot.call("close_current_action", skip=True, reason="Known already")
        assert (skipped["approval"], skipped["next_action"]) == ("skipped", "decide_planning_criteria")
        assert (await bot.call("shape_render_output"))["jump"] == "ahead"


async def test_an_independent_action_moves_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as bot:
        await open_example(bot)
        answer = await bot.call("discovery_correct_bot", corrections=["Ask fewer questions"])
        assert answer["action_state"] == "independent"
        assert answer["data"]["corrections"][0]["text"] == "Ask fewer questions"
        assert bot.state()["current_action"] == EXAMPLE_STATE["current_action"]


async def test_triggers_are_in_the_description_of_their_tool(tmp_path: Path) -> None:
    changes = {"base_actions/2_gather_context/trigger_words.json": EXAMPLE_TRIGGERS}
    async with served(tmp_path, bot=write_bot(tmp_path / "bot", changes), name="mini") as bot:
        listed = [tool for tool in (await bot.client.list_tools()).tools if tool.name.startswith("mini_")]
    assert [tool.name for tool in listed][:5] == [
        "mini_tool", "mini_close_current_action", "mini_restart_server", "mini_shape_tool",
        "mini_shape_initialize_project",
    ]  # fmt: skip
    assert len(listed) == 3 + 2 + 2 * 4
    gather = next(tool for tool in listed if tool.name == "mini_shape_gather_context")
    assert (gather.description or "").endswith("Trigger patterns: gather context, clarify requirements, ask questions")


HERE = "tests/seeds/test_tool_decomposition.py"
E2E, TOOLSET, FILE = "tests/e2e/test_bots.py", "tests/bots/test_toolset.py", "tests/bots/test_state_file.py"
WINDOW, NAMING = "tests/bots/test_window.py", "tests/bots/test_naming.py"
BOT_TOOL = f"{HERE}::test_the_bot_tool_goes_to_the_stored_behavior_and_action"
BEHAVIOR_TOOL = f"{HERE}::test_a_behavior_tool_goes_to_its_own_action_and_is_written"
ACTION_TOOL = f"{HERE}::test_an_action_tool_opens_it_and_neither_completes_nor_moves_on"
STALE = f"{HERE}::test_a_call_sees_what_another_process_wrote_in_between"
PRECEDENCE = f"{HERE}::test_the_pointer_comes_first_then_the_completions_then_the_first_action"
HAND = f"{HERE}::test_what_a_hand_added_to_the_file_is_kept_beside_it"
CLIENT = f"{HERE}::test_the_example_of_the_test_client"
END = f"{HERE}::test_close_names_the_end_of_a_behavior_and_of_the_bot"
TRIGGERS = f"{HERE}::test_triggers_are_in_the_description_of_their_tool"
INDEPENDENT = f"{HERE}::test_an_independent_action_moves_nothing"
FIELDS = f"{WINDOW}::test_the_file_shows_the_fields_that_every_reader_knows"
LISTED = f"{E2E}::test_story_bot_lists_as_many_tools_as_the_profile_promises"
KILLS = "tests/bots/faults/test_servers.py::test_each_acknowledged_close_is_one_transition_though_servers_are_killed"
MERGED = (
    "tests/bots/test_instructions.py::test_instructions_are_merged_from_everything_that_the_bot_and_the_project_say"
)
ROWS: tuple[tuple[str, str], ...] = (
    ("bot tool {bot}_tool", BOT_TOOL),
    ("it goes to the stored behavior and action", BOT_TOOL),
    ("no state: first behavior, first action", BOT_TOOL),
    ("behavior tool {bot}_{behavior}_tool", BEHAVIOR_TOOL),
    ("it goes to its own current action", BEHAVIOR_TOOL),
    ("it writes current_behavior", BEHAVIOR_TOOL),
    ("no action of the behavior done: initialize_project", BEHAVIOR_TOOL),
    ("action tool {bot}_{behavior}_{action}", ACTION_TOOL),
    ("it opens the action directly, anywhere", ACTION_TOOL),
    ("one optional object `parameters`, passed on", f"{TOOLSET}::test_parameters_may_be_top_level_or_in_a_text"),
    ("result: status, behavior, action, data", BOT_TOOL),
    ("forward: the state is read in each call", STALE),
    ("forward: moves on only past an action that completed itself", BEHAVIOR_TOOL),
    ("direct call sets behavior and action, and saves", ACTION_TOOL),
    ("direct call does not complete", ACTION_TOOL),
    ("direct call does not move on", ACTION_TOOL),
    ("state in {project}/workflow_state.json", FIELDS),
    ("other place bot_dir/project_area", f"{WINDOW}::test_a_state_in_the_bots_own_folder_is_taken_over_once_and_said"),
    ("the four fields, with paths bot.behavior.action", FIELDS),
    ("completed_actions with action_state and timestamp", FIELDS),
    ("survives restarts", KILLS),
    ("the file may be edited by hand", HAND),
    ("precedence: current_action", PRECEDENCE),
    ("fallback: completed_actions", PRECEDENCE),
    ("default: the first action", PRECEDENCE),
    ("a stale pointer moves on", f"{HERE}::test_a_completion_of_the_last_action_after_the_pointer_ends_the_workflow"),
    ("file deleted: first action again", STALE),
    ("an unreadable file is reported", f"{WINDOW}::test_garbage_is_set_aside_and_the_state_stands"),
    ("actions do not complete by themselves", ACTION_TOOL),
    ("instructions, human, close, next", f"{E2E}::test_close_the_current_action"),
    ("a human marks complete", "tests/bots/test_window_gates.py::test_a_gate_of_the_bot_itself_holds_without_strict"),
    ("initialize_project completes itself unless confirmation is needed", CLIENT),
    ("{bot}_close_current_action", CLIENT),
    ("close: read, mark and move in one step", KILLS),
    ("close answers status, completed_action, next_action", CLIENT),
    ("close without any state", f"{WINDOW}::test_a_close_right_after_a_deletion_closes_the_first_action"),
    ("last action: next behavior", END),
    ("last behavior: end", END),
    ("complete or skip ahead", f"{HERE}::test_an_action_is_skipped_with_a_reason_or_jumped_over"),
    ("actions are found in base_actions", TRIGGERS),
    (
        "behaviors from the configuration, or from folders",
        f"{NAMING}::test_the_order_is_by_number_then_name_and_what_has_no_number_comes_last",
    ),
    ("order of registration", TRIGGERS),
    ("75 tools", LISTED),
    (
        "the same formula for any bot",
        f"{NAMING}::test_there_are_three_tools_and_one_for_each_behavior_and_for_each_of_its_actions",
    ),
    ("restart reads again", f"{TOOLSET}::test_a_new_behavior_brings_its_tools_and_the_listeners_hear_of_it"),
    ("restart really restarts", f"{TOOLSET}::test_the_process_ends_only_when_that_was_asked_for_and_the_answer_is_out"),
    ("independent actions move nothing", INDEPENDENT),
    ("trigger_words.json for each action", TRIGGERS),
    ("Trigger patterns: … in the description", TRIGGERS),
    (
        "number prefixes and clean names",
        f"{NAMING}::test_digits_before_an_underscore_are_a_number_and_the_rest_is_the_name",
    ),
    ("unknown behavior: error", f"{TOOLSET}::test_unknown_folders_and_wrong_parameters_are_refused_in_words"),
    ("example 1: continue", f"{E2E}::test_continue_where_i_left_off"),
    ("example 2: start discovery", f"{E2E}::test_jump_to_a_behavior"),
    ("example 3: gather context for exploration", f"{E2E}::test_jump_to_an_action"),
    ("example 4: done", f"{E2E}::test_close_the_current_action"),
    ("example of the test client", CLIENT),
    ("gather_context: questions, evidence, answers", MERGED),
    ("planning: assumptions, criteria, decisions", MERGED),
    ("build_knowledge: template, rules, output", MERGED),
    ("render", "tests/bots/test_rendering.py::test_"),
    ("validate: rules with scanners", "tests/bots/test_scanning.py::test_"),
    ("correct_bot", "tests/bots/test_corrections.py::test_a_human_applies_a_correction_and_takes_it_back"),
    ("discoverable by descriptions", "tests/bots/test_prompts.py::test_every_parameter_of_a_listed_tool_is_described"),
    ("several machines and sessions", STALE),
)


def test_every_requirement_has_a_test() -> None:
    assert len(ROWS) == 64
    tests = {path: _tests_of(ROOT / path) for path in {target.split("::")[0] for _, target in ROWS}}
    missing = [
        row for row in ROWS if not any(name.startswith(row[1].split("::")[1]) for name in tests[row[1].split("::")[0]])
    ]
    assert missing == []


def _tests_of(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
