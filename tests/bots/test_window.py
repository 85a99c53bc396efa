"""The state file as a window: what a person does to it between calls, and what comes of it."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.bots.faults.desk import AT, BOT, PLAN, Desk, desk
from trysquare.bots.workflow.machine import Plan
from trysquare.bots.workflow.sync import NAME
from trysquare.store import project_state
from trysquare.store.database import open_database
from trysquare.store.workflows import SqliteWorkflows


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path / "project"


@pytest.fixture
def here(project: Path) -> Desk:
    return desk(project)


def closes(here: Desk, count: int) -> None:
    for _ in range(count):
        here.close()


def kinds(here: Desk) -> list[str]:
    return [event.kind for event in here.state.events()]


def test_looking_at_a_new_project_writes_nothing(here: Desk) -> None:
    assert here.current() == "shape.initialize_project"
    assert list(here.project.iterdir()) == []


def test_the_file_shows_the_fields_that_every_reader_knows(here: Desk) -> None:
    here.open("shape.gather_context")
    here.close()
    shown = here.document()
    timestamp = shown.pop("timestamp")
    assert timestamp.endswith("Z")
    assert shown == {
        "current_behavior": "story_bot.shape",
        "current_action": "story_bot.shape.validate_rules",
        "completed_actions": [
            {
                "action_state": "story_bot.shape.gather_context",
                "timestamp": AT,
                "version": 2,
                "approval": "claimed",
            }
        ],
        "version": 2,
        "behaviors": {"shape": {"current_action": "validate_rules"}},
        "schema": 1,
    }


def test_a_file_that_came_with_the_folder_is_where_the_work_goes_on(here: Desk) -> None:
    here.file.write_text(
        json.dumps(
            {
                "current_behavior": f"{BOT}.discovery",
                "current_action": f"{BOT}.discovery.gather_context",
                "timestamp": "2026-11-15T10:00:00",
                "completed_actions": [
                    {"action_state": f"{BOT}.discovery.initialize_project", "timestamp": "2026-11-15T09:00:00"}
                ],
            }
        )
    )
    assert here.current() == "discovery.gather_context"
    here.close()
    assert here.completed() == ["discovery.initialize_project", "discovery.gather_context"]


def test_the_project_folder_alone_carries_the_state_to_another_machine(here: Desk, tmp_path: Path) -> None:
    closes(here, 4)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / NAME).write_bytes(here.file.read_bytes())
    there = desk(elsewhere)
    assert there.load().state.current == here.load().state.current
    assert there.load().state.latest == here.load().state.latest


def test_an_edited_pointer_is_honoured_once_and_said(here: Desk) -> None:
    closes(here, 2)
    here.edit(current_action=f"{BOT}.discovery.gather_context")
    found = here.load()
    assert found.state.current.path(BOT) == f"{BOT}.discovery.gather_context"
    assert len(found.notices.warnings) == 1
    assert here.load().notices.warnings == ()
    assert kinds(here) == ["close", "close", "external_edit"]
    here.close()
    assert here.completed() == ["shape.initialize_project", "shape.gather_context", "discovery.gather_context"]


def test_a_file_that_was_only_laid_out_anew_changes_nothing(here: Desk) -> None:
    closes(here, 2)
    before = here.load().state
    here.file.write_text(json.dumps(here.document(), indent=8))
    assert here.load().state == before
    assert kinds(here) == ["close", "close"]


def test_a_line_taken_out_by_hand_is_gone_from_the_file_and_kept_among_the_events(here: Desk) -> None:
    closes(here, 3)
    here.edit(completed_actions=here.document()["completed_actions"][:1], current_action=None)
    assert here.current() == "discovery.initialize_project", "the behavior that the file names goes on"
    assert here.completed() == ["shape.initialize_project"]
    before = here.state.state_at("main", 3)
    assert len(before.latest) == 3


def test_a_proof_that_stands_only_in_the_file_is_a_claim(here: Desk) -> None:
    here.close(approval="proven")
    line = {"action_state": f"{BOT}.shape.gather_context", "timestamp": AT, "approval": "proven"}
    here.edit(completed_actions=[*here.document()["completed_actions"], line])
    here.load()
    assert [each.entry.approval for each in here.state.history()] == ["proven", "claimed"]


def test_deleting_the_file_resets_to_the_first_action_and_keeps_the_past(here: Desk) -> None:
    closes(here, 4)
    here.file.unlink()
    found = here.load()
    assert found.state.current == PLAN.first
    assert found.state.version == 5
    assert "workflow_state.json was deleted" in found.notices.warnings[0]
    assert here.completed() == []
    assert kinds(here)[-1] == "reset_by_delete"
    assert len(here.state.state_at("main", 4).latest) == 4


def test_a_close_right_after_a_deletion_closes_the_first_action(here: Desk) -> None:
    closes(here, 4)
    here.file.unlink()
    assert here.close().answer == {"completed_action": "initialize_project"}
    assert here.completed() == ["shape.initialize_project"]


def test_a_restored_older_copy_is_honoured(here: Desk) -> None:
    closes(here, 2)
    older = here.file.read_bytes()
    closes(here, 2)
    here.file.write_bytes(older)
    assert here.current() == "shape.validate_rules"
    assert here.load().state.version == 5
    assert here.completed() == ["shape.initialize_project", "shape.gather_context"]


def test_the_copy_of_the_step_before_is_honoured_too(here: Desk) -> None:
    closes(here, 1)
    older = here.file.read_bytes()
    closes(here, 1)
    here.file.write_bytes(older)
    assert here.current() == "shape.gather_context"


@pytest.mark.parametrize(
    "garbage", [b"", b"{", b"\x00\xff\xfe", b"[1, 2]", b'{"current_action": "other_bot.shape.x"}', b"\n" * 100]
)
def test_garbage_is_set_aside_and_the_state_stands(here: Desk, garbage: bytes) -> None:
    closes(here, 2)
    before = here.load().state
    here.file.write_bytes(garbage)
    found = here.load()
    assert found.state == before
    assert "workflow_state.json.corrupt-" in found.notices.recovered[0]
    [aside] = here.project.glob(f"{NAME}.corrupt-*Z")
    assert aside.read_bytes() == garbage
    assert here.completed() == ["shape.initialize_project", "shape.gather_context"]
    assert here.load().notices.recovered == ()


def test_garbage_in_a_new_project_is_set_aside_and_work_begins(here: Desk) -> None:
    here.file.write_text("not a state")
    found = here.load()
    assert (found.state.current, len(found.notices.recovered)) == (PLAN.first, 1)


def test_a_file_that_is_written_and_not_recorded_is_not_called_stale(here: Desk) -> None:
    """As on a disk that is full after the change: nothing is lost, and the next call records it."""
    closes(here, 1)
    with closing(sqlite3.connect(here.project / ".trysquare/state.db")) as database:
        database.execute(
            "CREATE TRIGGER full BEFORE UPDATE OF known ON workflow_bots WHEN new.known IS NOT old.known"
            " BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
        )
        done = here.close()
        database.execute("DROP TRIGGER full")
        database.commit()
    [warning] = done.notices.warnings
    assert ("disk is full" in warning, "stale" in warning, "Nothing was changed" in warning) == (True, False, False)
    assert "shape.gather_context" in here.completed()
    assert here.current() == "shape.validate_rules"
    assert here.load().notices.warnings == ()


def test_a_file_that_cannot_be_written_never_fails_the_call_and_is_repaired_by_the_next(here: Desk) -> None:
    closes(here, 1)
    before = here.file.read_bytes()
    lock = here.project / ".trysquare" / "window.lock"
    lock.unlink()
    lock.mkdir()
    done = here.close()
    assert done.answer == {"completed_action": "gather_context"}
    assert "stale" in done.notices.warnings[0]
    assert here.file.read_bytes() == before
    lock.rmdir()
    assert here.current() == "shape.validate_rules"
    assert here.completed() == ["shape.initialize_project", "shape.gather_context"]


def test_an_edit_of_a_stale_file_undoes_no_completion_that_it_never_showed(here: Desk) -> None:
    closes(here, 1)
    shown = here.document()
    lock = here.project / ".trysquare" / "window.lock"
    lock.unlink()
    lock.mkdir()
    here.close()
    lock.rmdir()
    here.file.write_text(json.dumps({**shown, "remark": "by hand"}))
    assert here.current() == "shape.validate_rules"
    assert here.completed() == ["shape.initialize_project", "shape.gather_context"]


def test_a_stale_file_that_was_only_laid_out_anew_moves_no_pointer_back(here: Desk) -> None:
    here.open("shape.initialize_project")
    shown = here.document()
    lock = here.project / ".trysquare" / "window.lock"
    lock.unlink()
    lock.mkdir()
    here.open("discovery.gather_context")
    lock.rmdir()
    here.file.write_text(json.dumps(shown))
    assert here.current() == "discovery.gather_context"
    assert here.document()["current_action"] == f"{BOT}.discovery.gather_context"


def test_a_window_that_is_a_folder_is_left_alone_and_said(here: Desk) -> None:
    closes(here, 1)
    here.file.unlink()
    here.file.mkdir()
    found = here.close()
    assert found.state.current.action == "validate_rules"
    assert "cannot be read" in found.notices.warnings[0]
    assert here.file.is_dir()


def test_what_a_killed_process_left_half_written_is_swept(here: Desk) -> None:
    closes(here, 1)
    left = here.project / f".{NAME}.0123456789ab.tmp"
    left.write_text('{"half')
    closes(desk(here.project), 1)
    assert not left.exists()


def test_a_state_in_the_bots_own_folder_is_taken_over_once_and_said(project: Path, tmp_path: Path) -> None:
    legacy = tmp_path / "bot" / "project_area"
    legacy.mkdir(parents=True)
    (legacy / NAME).write_text(
        json.dumps({"current_action": f"{BOT}.shape.validate_rules", "completed_actions": [], "timestamp": AT})
    )
    here = desk(project, legacy=legacy)
    found = here.load()
    assert found.state.current.path(BOT) == f"{BOT}.shape.validate_rules"
    assert str(legacy) in found.notices.warnings[0]
    here.file.unlink()
    assert here.current() == "shape.initialize_project", "a reset does not bring the old file back"


def test_a_state_in_the_project_outranks_one_in_the_bots_own_folder(project: Path, tmp_path: Path) -> None:
    legacy = tmp_path / "project_area"
    for folder, action in ((legacy, "validate_rules"), (project, "gather_context")):
        folder.mkdir()
        (folder / NAME).write_text(json.dumps({"current_action": f"{BOT}.shape.{action}"}))
    assert desk(project, legacy=legacy).current() == "shape.gather_context"


def another_bot(project: Path) -> Desk:
    return desk(project, plan=Plan(bot="design_bot", behaviors=("model",), actions=("draw", "check")))


def test_a_second_bot_of_a_project_has_a_file_of_its_own(here: Desk) -> None:
    closes(here, 2)
    second = another_bot(here.project)
    second.begin()
    assert here.document()["current_action"] == f"{BOT}.shape.validate_rules"
    own = json.loads((here.project / ".trysquare" / "design_bot" / NAME).read_text())
    assert own["current_action"] == "design_bot.model.draw"
    assert second.load().state.version == 0
    assert here.load().state.version == 2


def test_a_bot_leaves_the_state_file_of_another_one_alone(here: Desk, tmp_path: Path) -> None:
    closes(here, 2)
    copied = tmp_path / "copied"
    copied.mkdir()
    (copied / NAME).write_bytes(here.file.read_bytes())
    another_bot(copied).begin()
    assert (copied / NAME).read_bytes() == here.file.read_bytes()


def test_an_edit_in_the_same_moment_with_the_same_length_is_seen(here: Desk) -> None:
    here.open("shape.gather_context")
    here.load()
    text = here.file.read_text()
    when = here.file.stat().st_mtime_ns
    with here.file.open("r+", encoding="utf-8") as file:
        file.write(text.replace('"delivered": true', '"delivered": null'))
    os.utime(here.file, ns=(when, when))
    assert here.load().state.delivered is False


def test_a_state_file_of_the_database_that_was_lost_is_rebuilt_from_the_window(project: Path) -> None:
    project.mkdir()
    with closing(open_database(project_state(project))) as database:
        here = desk(project, store=SqliteWorkflows(database))
        closes(here, 3)
    for left in (project / ".trysquare").glob("state.db*"):
        left.unlink()
    again = desk(project)
    assert again.current() == "discovery.initialize_project"
    assert len(again.state.history()) == 3
