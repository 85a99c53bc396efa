"""Moves on a bot's state: one transaction each, the same on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread

import pytest

from tests.bots.faults.desk import AT, BOT, PLAN, Desk, at, desk
from trysquare import ErrorCode, ToolError
from trysquare.bots.workflow.machine import Plan, RunState, close
from trysquare.bots.workflow.runs import Change, refers_to
from trysquare.bots.workflow.transaction import SHOWN_RUNS, entry_record, head_record
from trysquare.core.errors import NotFound
from trysquare.store import project_state
from trysquare.store.database import open_database
from trysquare.store.location import find_project_id


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str | None:
    return None if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def here(url: str | None, tmp_path: Path) -> Desk:
    return desk(tmp_path / "project", url=url)


def code_of(call: pytest.ExceptionInfo[ToolError]) -> ErrorCode:
    return call.value.code


def test_another_process_goes_on_where_one_left_off(here: Desk, url: str | None) -> None:
    here.open("shape.initialize_project")
    here.close()
    again = desk(here.project, url=url)
    assert again.load().state == here.load().state
    assert again.close().answer == {"completed_action": "gather_context"}
    assert here.current() == "shape.validate_rules"


@pytest.mark.parametrize(
    "expected", ["initialize_project", "shape.initialize_project", f"{BOT}.shape.initialize_project"]
)
def test_the_expected_action_may_be_named_in_short_or_in_full(expected: str) -> None:
    assert refers_to(PLAN, expected, PLAN.first)


@pytest.mark.parametrize("expected", ["discovery.initialize_project", "other.shape.initialize_project", "", "a.b.c.d"])
def test_an_action_of_another_behavior_or_bot_is_not_the_expected_one(expected: str) -> None:
    assert not refers_to(PLAN, expected, PLAN.first)


def test_a_close_of_a_version_that_is_past_changes_nothing(here: Desk) -> None:
    here.close(version=0)
    with pytest.raises(ToolError, match="has version 1, not 0") as refused:
        here.close(version=0)
    assert code_of(refused) == ErrorCode.STATE_CONFLICT
    assert refused.value.fields == {"current_action": f"{BOT}.shape.gather_context", "version": 1}
    assert len(here.state.history()) == 1


def test_a_call_that_is_sent_again_gets_its_first_answer_and_moves_nothing(here: Desk, url: str | None) -> None:
    first = here.close(key="k")
    here.close()
    again = desk(here.project, url=url).close(key="k")
    assert (again.answer, again.replayed) == (first.answer, True)
    assert len(here.state.history()) == 2


def test_a_request_key_with_other_arguments_is_a_conflict(here: Desk) -> None:
    here.close(key="k", arguments={"reason": "a"})
    with pytest.raises(ToolError, match="with other arguments") as refused:
        here.close(key="k", arguments={"reason": "b"})
    assert code_of(refused) == ErrorCode.STATE_CONFLICT
    assert len(here.state.history()) == 1


def test_a_refused_move_leaves_nothing_behind_and_its_key_free(here: Desk) -> None:
    with pytest.raises(ToolError):
        here.close(key="k", version=3)
    assert here.close(key="k").replayed is False


def test_a_change_that_raises_writes_nothing(here: Desk) -> None:
    here.close()

    def refuse(state: RunState) -> Change:
        raise ToolError("not now")

    with pytest.raises(ToolError, match="not now"):
        here.state.move(refuse, kind="close", principal="agent")
    assert here.load().state.version == 1
    assert here.state.verify().rows == 1


def test_a_change_that_does_not_count_the_version_on_is_a_mistake(here: Desk) -> None:
    with pytest.raises(ValueError, match="version"):
        here.state.move(lambda state: Change(state=replace(state, delivered=True)), kind="x", principal="agent")


def test_what_changes_nothing_writes_no_version(here: Desk) -> None:
    here.open("shape.initialize_project")
    assert here.open("shape.initialize_project").state.version == 1
    assert [event.version for event in here.state.events()] == [1]


def test_an_independent_action_is_in_the_audit_and_moves_nothing(here: Desk) -> None:
    here.close()
    before = here.load().state
    here.state.record("correct_bot", "agent", {"behavior": "shape"})
    assert here.load().state == before
    assert here.state.verify().rows == 2
    assert len(here.state.history()) == 1


def test_notes_are_kept_with_the_move_that_wrote_them(here: Desk) -> None:
    def noted(state: RunState) -> Change:
        return Change(state=close(PLAN, state, at=AT).state, notes={"digests": {"a": "1"}})

    here.state.move(noted, kind="close", principal="agent")
    assert here.state.notes() == {"digests": {"a": "1"}}
    assert here.state.notes("other") == {}


def test_runs_do_not_mix(here: Desk) -> None:
    here.close()
    here.close(run="story-12")
    here.close(run="story-12")
    assert here.current() == "shape.gather_context"
    assert here.current("story-12") == "shape.validate_rules"
    assert [(run.name, run.state.version) for run in here.state.runs()] == [("main", 1), ("story-12", 2)]
    assert here.document()["runs"]["story-12"]["current_action"] == f"{BOT}.shape.validate_rules"


@pytest.mark.parametrize("name", ["", "../x", "a b", "x" * 65, ".hidden", "a\n"])
def test_a_name_that_no_run_can_have_is_refused(here: Desk, name: str) -> None:
    with pytest.raises(ToolError, match="run name"):
        here.close(run=name)


def test_a_fork_takes_the_history_along_and_goes_its_own_way(here: Desk) -> None:
    for _ in range(3):
        here.close()
    here.state.fork("main", "earlier", at_version=2, principal="agent")
    here.state.fork("main", "now", principal="agent")
    assert here.current("earlier") == "shape.validate_rules"
    assert len(here.state.history("earlier")) == 2
    assert here.load("now").state == here.load().state
    here.close(run="earlier")
    assert len(here.state.history()) == 3
    assert [run.origin for run in here.state.runs()] == ["main@2", "", "main@3"]


def test_a_fork_onto_a_run_or_of_no_run_is_refused(here: Desk) -> None:
    here.close()
    with pytest.raises(ToolError, match="`main` already exists"):
        here.state.fork("main", "main", principal="agent")
    with pytest.raises(NotFound, match=r"`none`.*`main`"):
        here.state.fork("none", "x", principal="agent")


def test_a_rewind_is_a_new_change_that_deletes_nothing(here: Desk) -> None:
    for _ in range(4):
        here.close()
    there = here.state.rewind("main", 1, principal="ada", reason="wrong questions").state
    assert (there.current, there.version) == (at("shape.gather_context"), 5)
    history = [(line.entry.position.action, line.entry.kind) for line in here.state.history()]
    assert history[:4] == [(action, "completed") for action in (*PLAN.actions, "initialize_project")]
    assert sorted(history[4:]) == [(a, "reopened") for a in ("gather_context", "initialize_project", "validate_rules")]
    assert here.state.history(after=4)[0].entry.reason == "wrong questions"
    again = here.state.rewind("main", 4, principal="ada").state
    assert (again.current, len([p for p in again.latest if again.is_completed(p)])) == (
        at("discovery.gather_context"),
        4,
    )


def test_a_version_that_never_was_cannot_be_rewound_to(here: Desk) -> None:
    here.close()
    for version in (-1, 2):
        with pytest.raises(ToolError, match="0 to 1"):
            here.state.rewind("main", version, principal="agent")


def test_history_and_events_come_in_pages(here: Desk) -> None:
    for _ in range(5):
        here.close()
    assert [line.seq for line in here.state.history(after=1, limit=2)] == [2, 3]
    assert [event.version for event in here.state.events(after=3)] == [4, 5]


def test_a_plan_that_lost_the_current_action_goes_on_from_what_was_completed(here: Desk, url: str | None) -> None:
    here.close()
    here.close()
    smaller = Plan(bot=BOT, behaviors=PLAN.behaviors, actions=PLAN.actions[:2])
    assert desk(here.project, plan=smaller, url=url).load().state.current == at("shape.gather_context")


def test_of_many_closers_of_one_action_one_wins(here: Desk, url: str | None) -> None:
    here.open("shape.initialize_project")
    count = 8
    ready, outcomes = Barrier(count), list[str]()

    def work() -> None:
        mine = desk(here.project, url=url)
        ready.wait(timeout=60)
        try:
            mine.close(version=1)
            outcomes.append("closed")
        except ToolError as error:
            outcomes.append(error.code)

    threads = [Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == sorted(["closed", *["STATE_CONFLICT"] * (count - 1)])
    assert len(here.state.history()) == 1
    assert here.state.verify().sound


def damage(here: Desk, url: str | None, run: str, text: str) -> None:
    """Spoil the stored record of a run behind the program's back."""
    if url is None:
        with closing(open_database(project_state(here.project))) as database, database.write() as connection:
            connection.execute("UPDATE workflow_runs SET state = ? WHERE run = ?", (text, run))
        return
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        where = (text, run, find_project_id(here.project))
        connection.execute("UPDATE workflow_runs SET state = %s WHERE run = %s AND project = %s", where)


@pytest.mark.parametrize("text", ["{bad", "{}", "[1]", '{"current": "x"}', '{"current": ["shape"], "pointers": {}}'])
def test_a_damaged_record_stops_its_own_run_and_is_named(here: Desk, url: str | None, text: str) -> None:
    for run in ("main", "x", "y"):
        here.close(run=run)
    here.close(run="x")
    damage(here, url, "x", text)
    with pytest.raises(ToolError, match="record of run `x` is damaged") as refused:
        here.close(run="x")
    assert code_of(refused) == ErrorCode.STATE_UNAVAILABLE
    assert "bot recover --run x" in (refused.value.instruction or "")
    assert [here.close(run=run).state.version for run in ("main", "y")] == [2, 2]
    assert [each.name for each in here.state.runs()] == ["main", "y"]
    assert [*here.state.damaged()] == ["x"]

    state, version = here.state.recover("x", principal="ada")
    assert (version, state.version, str(state.current)) == (2, 3, "shape.validate_rules")
    assert [str(each) for each in state.latest] == ["shape.initialize_project", "shape.gather_context"]
    assert here.close(run="x").state.version == 4
    assert here.state.damaged() == {}


def test_the_file_shows_the_main_run_and_those_that_changed_last(here: Desk) -> None:
    for number in range(SHOWN_RUNS + 3):
        here.close(run=f"run-{number:02d}")
    assert len(here.document()["runs"]) == SHOWN_RUNS
    assert "run-00" not in here.document()["runs"]
    here.close(run="run-00")
    assert "run-00" in here.document()["runs"]
    assert len(here.state.runs()) == SHOWN_RUNS + 3
    assert here.load("run-01").state.version == 1, "a run that is not shown is not lost"


def test_the_file_holds_one_line_for_each_completed_action_and_the_store_all_of_them(here: Desk) -> None:
    here.close()
    for _ in range(20):
        here.open("shape.initialize_project")
        here.close()
    assert here.completed() == ["shape.initialize_project"]
    assert len(here.state.history(limit=1000)) == 41
    assert len(here.state.state_at("main", 3).latest) == 1


def test_a_record_of_an_earlier_version_is_read_and_hands_its_lines_over(here: Desk, url: str | None) -> None:
    here.close()
    here.close()
    before = here.load().state
    inline = {**head_record(before), "latest": [entry_record(each) for each in before.latest.values()]}
    damage(here, url, "main", json.dumps(inline))
    assert desk(here.project, url=url).load().state == before
    after = here.close().state
    assert desk(here.project, url=url).load().state == after
    assert len(after.latest) == 3
