"""The gates of a bot through a real MCP client: confirmation, proof, rejection, order, and what nobody may do alone."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.bots.bot_folders import write_bot
from tests.bots.served_bots import Person, served
from trysquare.bots.definition.scaffold import write_new_bot
from trysquare.store import StoredApprovals, project_state
from trysquare.store.database import open_database

INITIALIZE = "base_actions/1_initialize_project/action_config.json"
GATHER = "base_actions/2_gather_context/action_config.json"


def mini(tmp_path: Path, **config: Any) -> Path:
    """The minimal bot, with something in its configuration."""
    auto = {"name": "initialize_project", "workflow": True, "policy": "auto"}
    bot = {"name": "mini", "behaviors": ["shape", "code"], **config}
    return write_bot(tmp_path / "bot", {"bot_config.json": bot, INITIALIZE: auto})


def files_in(folder: Path) -> list[Path]:
    """What lies in a folder."""
    return list(folder.iterdir())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project."""
    made = tmp_path / "project"
    made.mkdir()
    return made


async def test_initialize_project_asks_and_a_close_confirms_it(project: Path) -> None:
    async with served(project) as bot:
        asked = await bot.call("tool")
        assert asked["data"]["requires_confirmation"] is True
        assert asked["data"]["proposed_location"] == str(project)
        assert asked["action_state"] == "awaiting_confirmation"
        closed = await bot.call("close_current_action")
        assert (closed["completed_action"], closed["next_action"]) == ("initialize_project", "gather_context")


async def test_the_proposed_call_confirms_the_folder_and_goes_on(project: Path) -> None:
    async with served(project) as bot:
        confirmed = await bot.follow(await bot.call("tool"))
        assert (confirmed["action"], confirmed["action_completed"]) == ("initialize_project", True)
        assert (await bot.follow(confirmed))["action"] == "gather_context"


async def test_a_folder_that_nobody_named_stays_untouched_until_it_is_confirmed(project: Path) -> None:
    async with served(project, named=False) as bot:
        asked = await bot.call("tool")
        refused = await bot.call("shape_gather_context")
        assert asked["data"]["requires_confirmation"] is True
        assert refused["project_required"] is True
        assert files_in(project) == []
        confirmed = await bot.follow(refused)
        assert confirmed["action_completed"] is True
        assert bot.completed() == ["shape.initialize_project"]


async def test_a_later_behavior_is_initialized_without_a_question(project: Path) -> None:
    async with served(project) as bot:
        await bot.call("tool", confirm=True)
        resumed = await bot.call("discovery_tool")
        assert (resumed["action"], resumed["action_completed"]) == ("initialize_project", True)
        assert resumed["message"] == f"Working in {project}."
        assert bot.state()["current_action"] == "story_bot.discovery.gather_context"


async def test_a_close_right_after_an_action_that_was_done_by_itself_closes_nothing_else(project: Path) -> None:
    async with served(project) as bot:
        await bot.call("tool", confirm=True)
        meant_for_the_first = await bot.call("close_current_action")
        assert meant_for_the_first["completed_action"] == "initialize_project"
        assert bot.completed() == ["shape.initialize_project"]
        unseen = await bot.call("close_current_action")
        assert (unseen["completed_action"], unseen["delivered"]) == ("gather_context", False)
        assert unseen["warnings"]


async def test_a_folder_outside_the_project_needs_a_person(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    person = Person(agrees=False)
    async with served(project, person=person) as bot:
        refused = await bot.call("tool", confirm=str(outside))
        assert refused["error"]["code"] == "CONSENT_REFUSED"
        assert files_in(outside) == []
        person.agrees = True
        confirmed = await bot.call("tool", confirm=str(outside))
        assert (confirmed["project"], confirmed["action_completed"]) == (str(outside), True)
        assert confirmed["next"]["arguments"]["parameters"]["project"] == str(outside)
        assert (await bot.follow(confirmed))["project"] == str(outside)


async def test_a_close_sent_twice_closes_once(project: Path) -> None:
    async with served(project) as bot:
        await bot.call("shape_gather_context")
        once = await bot.call("close_current_action", expected_action="shape.gather_context")
        twice = await bot.call("close_current_action", expected_action="shape.gather_context")
        assert (twice["completed_action"], twice["next_action"]) == (once["completed_action"], once["next_action"])
        assert twice["already_closed"] is True
        assert bot.completed() == ["shape.gather_context"]


async def test_a_request_key_gets_its_first_answer_again(project: Path) -> None:
    async with served(project) as bot:
        await bot.call("shape_gather_context")
        once = await bot.call("close_current_action", request_key="k1")
        twice = await bot.call("close_current_action", request_key="k1")
        assert twice["replayed"] is True
        assert twice["completed_action"] == once["completed_action"] == "gather_context"
        assert bot.completed() == ["shape.gather_context"]


async def test_no_gate_stands_between_a_request_key_and_its_first_answer(project: Path, tmp_path: Path) -> None:
    """What is asked of the next action is no business of a close that was made before it."""
    bot = mini(tmp_path, gates={"shape.gather_context": {"proof": True}})
    async with served(project, bot=bot, name="mini") as client:
        close = {"request_key": "k1", "expected_action": "shape.initialize_project"}
        once = await client.call("close_current_action", **close)
        twice = await client.call("close_current_action", **close)
        assert (once["completed_action"], twice["completed_action"]) == ("initialize_project", "initialize_project")
        assert twice["replayed"] is True
        assert client.completed() == ["shape.initialize_project"]


async def test_a_close_that_expects_another_action_changes_nothing(project: Path) -> None:
    async with served(project) as bot:
        await bot.call("shape_gather_context")
        refused = await bot.call("close_current_action", expected_action="shape.validate_rules")
        assert refused["error"]["code"] == "STATE_CONFLICT"
        assert refused["current_action"] == "story_bot.shape.gather_context"
        assert bot.completed() == []


async def test_a_rejected_action_goes_back_to_work_with_its_reason(project: Path) -> None:
    async with served(project) as bot:
        await bot.call("shape_gather_context")
        sent_back = await bot.call("close_current_action", reject="The second answer is a guess.")
        assert (sent_back["status"], sent_back["action_completed"]) == ("rejected", False)
        again = await bot.follow(sent_back)
        assert again["data"]["instructions"]["sent_back"]["reason"] == "The second answer is a guess."
        await bot.call("close_current_action")
        assert bot.completed() == ["shape.gather_context"]


async def test_an_action_is_skipped_with_a_reason_and_not_without(project: Path) -> None:
    async with served(project) as bot:
        await bot.call("shape_synchronize_output")
        refused = await bot.call("close_current_action", skip=True)
        assert refused["error"]["code"] == "VALIDATION_INVALID_PARAM"
        skipped = await bot.call("close_current_action", skip=True, reason="Nothing was edited.")
        assert (skipped["approval"], skipped["next_action"]) == ("skipped", "validate_rules")
        assert bot.state()["completed_actions"][-1]["reason"] == "Nothing was edited."


async def test_independent_actions_move_nothing(project: Path) -> None:
    async with served(project) as bot:
        await bot.call("shape_gather_context")
        before = bot.state()
        answer = await bot.call("shape_correct_bot", corrections=["Name the cook."])
        assert (answer["action"], answer["action_state"]) == ("correct_bot", "independent")
        assert answer["data"]["instructions"]["corrections"] == ["Name the cook."]
        assert bot.state() == before


async def test_the_ends_of_behaviors_and_of_the_bot(project: Path, tmp_path: Path) -> None:
    async with served(project, bot=mini(tmp_path), name="mini") as bot:
        await bot.call("shape_build_knowledge")
        end = await bot.call("close_current_action")
        assert (end["completed_behavior"], end["next_behavior"]) == ("shape", "code")
        assert end["next_action"] == "initialize_project"
        await bot.call("code_build_knowledge")
        last = await bot.call("close_current_action")
        assert (last["workflow_complete"], last["next_action"], last["next_behavior"]) == (False, None, None)
        left = ["shape.initialize_project", "shape.gather_context", "code.initialize_project", "code.gather_context"]
        assert (last["open_actions"], last["open_count"]) == (left, 4)
        assert last["next"]["tool"] == "mini_shape_initialize_project"
        assert bot.state()["current_action"] == "mini.code.build_knowledge"
        over = await bot.call("tool")
        assert (over["workflow_complete"], over["open_actions"], over["action"]) == (False, left, "build_knowledge")
        assert len(bot.completed()) == 2


async def test_a_workflow_is_complete_when_every_action_is_done(project: Path, tmp_path: Path) -> None:
    async with served(project, bot=mini(tmp_path), name="mini") as bot:
        answer = await bot.call("tool", confirm=True)
        while not answer.get("workflow_complete"):
            answer = await bot.follow(answer)
        assert "next" not in answer
        assert (await bot.call("tool"))["workflow_complete"] is True
        assert bot.state()["workflow_complete"] is True


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_in_strict_mode_only_a_person_closes(project: Path, mode: str) -> None:
    person = Person(agrees=False)
    async with served(project, strict=True, person=person, mode=mode) as bot:
        await bot.call("shape_gather_context", answers={"Who cooks?": "Ada"})
        refused = await bot.call("close_current_action")
        assert refused["error"]["code"] == "CONSENT_REFUSED"
        assert bot.completed() == []
        person.agrees = True
        closed = await bot.call("close_current_action")
        assert (closed["approval"], closed["completed_action"]) == ("confirmed", "gather_context")
        assert closed["approved_by"]
        assert closed["approved_how"] in ("elicitation", "input_required")
        assert "docs/stories/clarification.json" in person.asked[-1]


async def test_a_client_that_cannot_ask_gets_a_code_that_only_the_terminal_takes(project: Path) -> None:
    async with served(project, strict=True) as bot:
        await bot.call("shape_gather_context")
        waiting = await bot.call("close_current_action")
        code = waiting["approval"]["code"]
        assert waiting["error"]["code"] == "CONSENT_REQUIRED"
        again = await bot.call("close_current_action")
        assert (again["error"]["code"], bot.completed()) == ("CONSENT_REQUIRED", [])
        _approve(project, code)
        closed = await bot.call("close_current_action")
        assert (closed["approval"], closed["approved_by"], closed["approved_how"]) == ("confirmed", "Ada", "cli")


async def test_an_approval_counts_only_for_the_files_that_the_person_saw(project: Path) -> None:
    async with served(project, strict=True) as bot:
        await bot.call("shape_gather_context", answers={"Who cooks?": "Ada"})
        waiting = await bot.call("close_current_action")
        await bot.call("shape_gather_context", answers={"Who cooks?": "Nobody"})
        _approve(project, waiting["approval"]["code"])
        other = await bot.call("close_current_action")
        assert other["error"]["code"] == "CONSENT_REQUIRED"
        assert other["approval"]["code"] != waiting["approval"]["code"]
        assert bot.completed() == []


def _approve(project: Path, code: str) -> None:
    database = open_database(project_state(project))
    StoredApprovals(database).approve(code, by="Ada")
    database.close()


async def test_strict_mode_refuses_to_close_what_was_not_delivered(project: Path) -> None:
    async with served(project, strict=True, person=Person()) as bot:
        await bot.call("tool", confirm=True)
        refused = await bot.call("close_current_action")
        assert (refused["error"]["code"], refused["delivered"]) == ("STATE_CONFLICT", False)
        assert refused["current_action"] == "story_bot.shape.gather_context"


async def test_one_action_of_a_bot_can_ask_for_proof(project: Path, tmp_path: Path) -> None:
    folder = mini(tmp_path, gates={"shape.gather_context": {"proof": True}})
    async with served(project, bot=folder, name="mini") as bot:
        await bot.call("shape_gather_context")
        assert (await bot.call("close_current_action"))["error"]["code"] == "CONSENT_REQUIRED"
        behind = await bot.call("shape_build_knowledge")
        assert (behind["error"]["code"], behind["gate"]) == ("STATE_CONFLICT", "mini.shape.gather_context")
        assert bot.completed() == []


async def test_jumps_are_denied_or_confirmed_where_the_bot_says_so(project: Path, tmp_path: Path) -> None:
    person = Person(agrees=False)
    folder = mini(tmp_path, jumps={"ahead": "deny", "reopened": "confirm"})
    async with served(project, bot=folder, name="mini", person=person) as bot:
        await bot.call("tool", confirm=True)
        denied = await bot.call("code_build_knowledge")
        assert (denied["error"]["code"], denied["jump"]) == ("STATE_CONFLICT", "ahead")
        await bot.call("tool")
        await bot.call("close_current_action")
        refused = await bot.call("shape_gather_context")
        assert refused["error"]["code"] == "CONSENT_REFUSED"
        person.agrees = True
        reopened = await bot.call("shape_gather_context")
        assert (reopened["jump"], reopened["action"]) == ("reopened", "gather_context")
        assert "shape.gather_context" not in bot.completed()


async def test_actions_that_go_together_are_delivered_and_closed_together(project: Path, tmp_path: Path) -> None:
    folder = mini(tmp_path, gates={"shape.gather_context": {"policy": "combine_next"}})
    async with served(project, bot=folder, name="mini") as bot:
        both = await bot.call("shape_gather_context")
        assert list(both["data"]["combined"]) == ["build_knowledge"]
        closed = await bot.call("close_current_action")
        assert (closed["completed_action"], closed["closed_together"]) == ("build_knowledge", ["gather_context"])
        approvals = [entry["approval"] for entry in bot.state()["completed_actions"]]
        assert approvals == ["combined", "claimed"]


async def test_proof_of_an_action_in_between_holds_for_all_that_go_together(project: Path, tmp_path: Path) -> None:
    gates = {
        "shape.initialize_project": {"policy": "combine_next"},
        "shape.gather_context": {"policy": "combine_next", "proof": True},
    }
    async with served(project, bot=mini(tmp_path, gates=gates), name="mini") as bot:
        await bot.call("tool")
        assert (await bot.call("close_current_action"))["error"]["code"] == "CONSENT_REQUIRED"
        assert bot.completed() == []


async def test_a_skip_needs_the_proof_that_a_close_needs(project: Path) -> None:
    async with served(project, strict=True) as bot:
        await bot.call("shape_gather_context")
        refused = await bot.call("close_current_action", skip="No time.")
        assert (refused["error"]["code"], bot.completed()) == ("CONSENT_REQUIRED", [])


async def test_an_action_with_policy_skip_is_passed_over(project: Path, tmp_path: Path) -> None:
    folder = mini(tmp_path, gates={"shape.gather_context": {"policy": "skip"}})
    async with served(project, bot=folder, name="mini") as bot:
        done = await bot.call("tool", confirm=True)
        assert done["next_action"] == "build_knowledge"


async def test_runs_do_not_mix(project: Path) -> None:
    async with served(project) as bot:
        await bot.call("shape_gather_context")
        other = await bot.call("shape_build_knowledge", run="story-7")
        assert other["next"]["arguments"]["parameters"]["run"] == "story-7"
        assert (await bot.call("tool"))["action"] == "gather_context"
        assert (await bot.follow(other))["run"] == "story-7"
        assert (await bot.call("tool"))["action"] == "gather_context"


async def test_a_new_run_works_in_the_folder_that_was_confirmed(project: Path) -> None:
    async with served(project) as bot:
        await bot.call("tool", confirm=True)
        begun = await bot.call("tool", run="story-7")
        assert (begun["action"], begun["action_completed"]) == ("initialize_project", True)
        assert (await bot.follow(begun))["action"] == "gather_context"


async def test_answers_that_cannot_be_read_are_not_overwritten(project: Path) -> None:
    async with served(project) as bot:
        await bot.call("shape_gather_context", answers={"Who cooks?": "Ada"})
        spoil(project / "docs/stories/clarification.json")
        refused = await bot.call("shape_gather_context", answers={"Who eats?": "Guests"})
        assert "docs/stories/clarification.json" in refused["error"]["message"]
    assert text_of(project / "docs/stories/clarification.json") == "{"


def spoil(file: Path) -> None:
    """Leave something that is no JSON."""
    file.write_text("{", encoding="utf-8")


async def test_a_gate_that_asks_for_clean_rules_stays_shut_over_a_violation(project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mapper"
    write_new_bot(folder, "mapper")
    config = {"name": "mapper", "gates": {"shape.validate_rules": {"requires_clean": True}}}
    write_json(folder / "bot_config.json", config)
    async with served(project, bot=folder, name="mapper") as bot:
        write_json(project / "docs/story-graph.json", graph("Manage reservations"))
        found = await bot.call("shape_validate_rules")
        assert (found["data"]["clean"], found["data"]["violations"]) == (False, 1)
        refused = await bot.call("close_current_action")
        assert refused["violations"][0]["rule"] == "names_say_what_is_done"
        assert refused["violations"][0]["line"] > 1
        write_json(project / "docs/story-graph.json", graph("Book a table"))
        assert (await bot.call("close_current_action"))["completed_action"] == "validate_rules"


def write_json(file: Path, content: Any) -> None:
    """Write a file of the bot or of the project."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=2), encoding="utf-8")


def graph(story: str) -> dict[str, Any]:
    """A story graph with one story."""
    epic = {"name": "Come to eat", "stories": [{"name": story, "users": ["Guest"]}]}
    return {"schema": 1, "product": "Club", "goal": "Guests eat", "epics": [epic], "increments": []}


async def test_rendered_files_lie_in_the_project_after_render_output(project: Path) -> None:
    async with served(project) as bot:
        write_json(project / "docs/stories/story-graph.json", graph("Book a table"))
        rendered = await bot.call("shape_render_output")
        paths = [each["path"] for each in rendered["data"]["files"]]
    assert paths
    assert all(text_of(project / path) for path in paths)


def text_of(file: Path) -> str:
    """What a file holds."""
    return file.read_text(encoding="utf-8")


async def test_restart_reads_the_folder_again_and_leaves_the_state_alone(project: Path, tmp_path: Path) -> None:
    folder = mini(tmp_path)
    async with served(project, bot=folder, name="mini") as bot:
        await bot.call("shape_gather_context")
        before = bot.state()
        assert (await bot.call("restart_server"))["changed"] == []
        changed = {"description": "Shape it.", "goal": "Another goal."}
        (folder / "behaviors/1_shape/instructions.json").write_text(json.dumps(changed), encoding="utf-8")
        assert (await bot.call("restart_server"))["status"] == "reloaded"
        goal = (await bot.call("shape_gather_context"))["data"]["instructions"]["behavior_instructions"]["goal"]
        assert goal == "Another goal."
        assert bot.state() == before


async def test_a_folder_that_became_wrong_is_reported_and_the_bot_goes_on(project: Path, tmp_path: Path) -> None:
    folder = mini(tmp_path)
    async with served(project, bot=folder, name="mini") as bot:
        (folder / "bot_config.json").write_text("{", encoding="utf-8")
        told = await bot.call("restart_server")
        assert told["error"]["code"] == "CONFIG_INVALID"
        assert "bot_config.json" in told["error"]["message"]
        assert (await bot.call("shape_gather_context"))["status"] == "completed"


async def test_the_gateway_finds_a_tool_and_does_it(project: Path) -> None:
    async with served(project, profile=["gateway"]) as bot:
        found = await bot.call("find", query="gather context for exploration")
        names = [each["tool"] for each in found["data"]["tools"]]
        assert "story_bot_exploration_gather_context" in names
        done = await bot.call("do", tool="story_bot_exploration_gather_context")
        assert (done["behavior"], done["action"]) == ("exploration", "gather_context")


async def test_many_closes_at_once_close_one_action_each(project: Path) -> None:
    async with served(project) as bot:
        await bot.call("shape_gather_context")
        answers = await asyncio.gather(
            *(bot.call("close_current_action", expected_action="shape.gather_context") for _ in range(8))
        )
        assert {answer["completed_action"] for answer in answers} == {"gather_context"}
        assert bot.completed() == ["shape.gather_context"]


async def test_nothing_is_closed_or_sent_back_in_a_folder_that_nobody_named(project: Path, tmp_path: Path) -> None:
    folder = write_bot(tmp_path / "bot", {INITIALIZE: None})
    async with served(project, bot=folder, name="mini", named=False) as bot:
        closed = await bot.call("close_current_action")
        rejected = await bot.call("close_current_action", reject="No.")
    assert (closed["project_required"], rejected["project_required"]) == (True, True)
    assert files_in(project) == []
