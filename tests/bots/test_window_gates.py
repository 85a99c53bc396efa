"""An edit of the state file goes back, but never past an action that only a person can close."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bots.bot_folders import write_bot
from tests.bots.faults.desk import AT, BOT, PLAN, Desk, at, desk
from tests.bots.served_bots import Person, served
from trysquare.bots.workflow.conflicts import passed_gate
from trysquare.bots.workflow.machine import Entry, Plan, Position, RunState, begin, close, open_action
from trysquare.store import project_state
from trysquare.store.audit import Audit
from trysquare.store.database import open_database

SHAPE = ["shape.initialize_project", "shape.gather_context", "shape.validate_rules"]


@pytest.fixture
def here(tmp_path: Path) -> Desk:
    """A project in which every close needs proof, and one action was closed with it."""
    found = desk(tmp_path / "project", needs_proof=lambda _: True)
    found.close(approval="proven")
    return found


def entry(path: str, **fields: Any) -> dict[str, Any]:
    return {"action_state": f"{BOT}.{path}", "timestamp": AT, **fields}


FORGED: dict[str, dict[str, Any]] = {
    "the pointer": {"current_action": f"{BOT}.shape.validate_rules"},
    "the pointer, to another behavior": {"current_action": f"{BOT}.discovery.initialize_project"},
    "a completed action": {"completed_actions": [entry(SHAPE[0]), entry(SHAPE[1], approval="proven")]},
    "no pointer, but completed actions": {"current_action": None, "completed_actions": [entry(each) for each in SHAPE]},
    "the pointer of a behavior": {"behaviors": {"discovery": {"current_action": "validate_rules"}}},
    "a line of what was closed with proof": {"completed_actions": [entry(SHAPE[0]), entry(SHAPE[0], version=9)]},
    "the end": {"workflow_complete": True},
    "another run": {"runs": {"x": {"current_action": f"{BOT}.shape.validate_rules"}}},
}


@pytest.mark.parametrize("edit", FORGED.values(), ids=FORGED)
def test_an_edit_that_passes_a_gate_is_reported_and_not_honoured(here: Desk, edit: dict[str, Any]) -> None:
    here.edit(**edit)
    edited = here.file.read_bytes()
    found = here.load()

    assert "human" in found.notices.warnings[0]
    assert (here.current(), here.completed()) == ("shape.gather_context", ["shape.initialize_project"])
    assert here.load("x").state.version == 0
    assert [each.read_bytes() for each in here.project.glob("workflow_state.json.refused-*")] == [edited]
    assert here.load().notices.warnings == ()


def test_a_refused_edit_stands_in_the_audit(here: Desk) -> None:
    here.edit(current_action=f"{BOT}.shape.validate_rules")
    here.load()
    here.state.close()
    database = open_database(project_state(here.project))
    rows = [row for row in Audit(database).rows() if row.kind == "workflow.edit_refused"]
    database.close()

    assert [row.body["passes"] for row in rows] == [f"{BOT}.shape.gather_context"]


def test_a_call_that_comes_with_a_forged_edit_is_made_on_the_stored_state(here: Desk) -> None:
    here.edit(current_action=f"{BOT}.shape.validate_rules")
    assert here.close(approval="proven").answer == {"completed_action": "gather_context"}
    assert here.current() == "shape.validate_rules"


def test_an_edit_may_go_back_and_come_again_to_where_it_was(here: Desk) -> None:
    here.edit(current_action=f"{BOT}.shape.initialize_project")
    assert here.current() == "shape.initialize_project"
    here.edit(current_action=f"{BOT}.shape.gather_context")
    assert here.current() == "shape.gather_context"
    assert here.completed() == ["shape.initialize_project"]


def test_what_was_taken_up_again_is_not_closed_by_removing_the_mark(here: Desk) -> None:
    done = here.document()["completed_actions"]
    here.open("shape.initialize_project")
    assert here.completed() == [], "what was taken up again is not completed"
    here.edit(completed_actions=done, current_action=f"{BOT}.shape.gather_context")
    assert here.current() == "shape.initialize_project"
    assert here.completed() == []


def test_a_file_cannot_say_that_something_was_delivered(here: Desk) -> None:
    here.edit(delivered=True)
    assert here.load().state.delivered is False


def test_a_file_that_comes_alone_proves_nothing(tmp_path: Path) -> None:
    document = {"current_action": f"{BOT}.shape.validate_rules", "completed_actions": [entry(each) for each in SHAPE]}
    (tmp_path / "workflow_state.json").write_text(json.dumps(document), encoding="utf-8")
    found = desk(tmp_path, needs_proof=lambda _: True)
    assert "was refused" in found.load().notices.warnings[0]
    assert found.current() == "shape.initialize_project"


def test_an_edit_may_pass_what_needs_no_proof(tmp_path: Path) -> None:
    here = desk(tmp_path, needs_proof=lambda position: position == at("shape.validate_rules"))
    here.close()
    here.edit(current_action=f"{BOT}.shape.validate_rules")
    assert here.current() == "shape.validate_rules"
    here.edit(current_action=f"{BOT}.discovery.initialize_project")
    assert here.current() == "shape.validate_rules"


def walked(plan: Plan, moves: list[str]) -> RunState:
    state = begin(plan)
    for move in moves:
        made = close(plan, state, at=AT) if move == "close" else open_action(plan, state, at(move), at=AT)
        state = made.state
    return state


POSITIONS = [Position(behavior=behavior, action=action) for behavior in PLAN.behaviors for action in PLAN.actions]
STATES = st.lists(
    st.sampled_from(["close", "close", *(f"{each.behavior}.{each.action}" for each in POSITIONS)]), max_size=10
).map(lambda moves: walked(PLAN, moves))


@given(now=STATES, edited=STATES)
def test_no_edit_completes_what_needs_proof(now: RunState, edited: RunState) -> None:
    forged = [each for each in POSITIONS if edited.is_completed(each) and not now.is_completed(each)]
    passed = passed_gate(PLAN, now, edited, (), lambda _: True)
    assert not forged or passed in POSITIONS
    assert passed_gate(PLAN, now, edited, edited.latest.values(), lambda _: False) is None
    assert passed_gate(PLAN, now, now, (), lambda _: True) is None


@given(now=STATES, position=st.sampled_from(POSITIONS))
def test_a_completion_that_is_added_by_hand_is_the_one_that_is_named(now: RunState, position: Position) -> None:
    line = Entry(position=position, at=AT, version=now.version + 1)
    edited = replace(now, latest={**now.latest, position: line})
    assert passed_gate(PLAN, now, edited, [line], lambda each: each == position) == position
    assert passed_gate(PLAN, now, edited, [replace(line, kind="reopened")], lambda _: False) is None


async def test_a_strict_server_reports_to_the_model_that_the_edit_was_refused(tmp_path: Path) -> None:
    bot = write_bot(tmp_path / "bot")
    project = tmp_path / "project"
    project.mkdir()
    async with served(project, bot=bot, name="mini", person=Person(), strict=True) as client:
        await client.call("tool", confirm=True)
        document = client.state()
        assert document["current_action"] == "mini.shape.gather_context"
        client.write_state(**{**document, "current_action": "mini.code.build_knowledge"})
        told = await client.call("tool")

    assert (told["behavior"], told["action"]) == ("shape", "gather_context")
    assert "human" in told["warnings"][0]


async def test_a_gate_of_the_bot_itself_holds_without_strict(tmp_path: Path) -> None:
    gated = {"name": "gather_context", "workflow": True, "proof": True}
    bot = write_bot(tmp_path / "bot", {"base_actions/2_gather_context/action_config.json": gated})
    project = tmp_path / "project"
    project.mkdir()
    async with served(project, bot=bot, name="mini") as client:
        await client.call("tool", confirm=True)
        client.write_state(**{**client.state(), "current_action": "mini.shape.build_knowledge"})
        told = await client.call("tool")
        assert (told["behavior"], told["action"]) == ("shape", "gather_context")
        assert client.completed() == ["shape.initialize_project"]
