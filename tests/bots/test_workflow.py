"""Where a run goes: pure moves, without any store."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.bots.faults.desk import AT, PLAN, at
from trysquare.bots.workflow.machine import (
    Position,
    RunState,
    begin,
    close,
    current_in,
    following,
    open_action,
    reject,
    select_behavior,
)


def closed_to_the_end() -> RunState:
    state = begin(PLAN)
    while not state.finished:
        state = close(PLAN, state, at=AT).state
    return state


def test_closing_walks_every_action_of_every_behavior_once_and_ends() -> None:
    state = begin(PLAN)
    seen: list[Position] = []
    while not state.finished:
        made = close(PLAN, state, at=AT)
        seen.append(made.completed)
        state = made.state
    assert seen == [Position(behavior=b, action=a) for b in PLAN.behaviors for a in PLAN.actions]
    assert state.current == at("discovery.validate_rules"), "the pointer stays on the last action"


def test_a_close_tells_the_end_of_a_behavior_and_the_end_of_the_bot() -> None:
    last_of_shape = open_action(PLAN, begin(PLAN), at("shape.validate_rules"), at=AT).state
    ended = close(PLAN, last_of_shape, at=AT)
    assert (ended.completed_behavior, ended.next_behavior) == ("shape", "discovery")
    assert ended.next == at("discovery.initialize_project")
    last = open_action(PLAN, begin(PLAN), at("discovery.validate_rules"), at=AT).state
    over = close(PLAN, last, at=AT)
    assert (over.next, over.next_behavior, over.completed_behavior) == (None, None, "discovery")
    assert over.state.finished


def test_a_behavior_keeps_its_place_while_another_is_worked_on() -> None:
    state = open_action(PLAN, begin(PLAN), at("shape.gather_context"), at=AT).state
    away = select_behavior(PLAN, state, "discovery")
    assert current_in(PLAN, away) == at("discovery.initialize_project")
    assert current_in(PLAN, select_behavior(PLAN, away, "shape")) == at("shape.gather_context")


def test_going_back_marks_the_action_reopened_and_an_old_completion_does_not_move_it_on() -> None:
    state = close(PLAN, close(PLAN, begin(PLAN), at=AT).state, at=AT).state
    back = open_action(PLAN, state, at("shape.initialize_project"), at=AT)
    assert back.jump == "reopened"
    assert [entry.kind for entry in back.added] == ["reopened"]
    assert not back.state.is_completed(at("shape.initialize_project"))
    assert back.state.is_completed(at("shape.gather_context"))
    assert current_in(PLAN, back.state) == at("shape.initialize_project")


def test_opening_the_current_action_again_changes_nothing() -> None:
    once = open_action(PLAN, begin(PLAN), at("shape.initialize_project"), at=AT).state
    assert open_action(PLAN, once, at("shape.initialize_project"), at=AT).state is once


def test_a_finished_run_has_nowhere_to_go_until_an_action_is_reopened() -> None:
    over = closed_to_the_end()
    assert following(PLAN, over, over.current) is None
    again = open_action(PLAN, over, over.current, at=AT)
    assert (again.jump, again.state.finished) == ("reopened", False)


def test_a_rejected_action_stays_current_and_counts() -> None:
    state = reject(reject(begin(PLAN)))
    assert (state.current, state.rejections, state.version) == (PLAN.first, 2, 2)
    assert close(PLAN, state, at=AT).state.rejections == 0


MOVES = st.lists(
    st.one_of(
        st.just("close"),
        st.just("reject"),
        st.sampled_from(PLAN.behaviors),
        st.sampled_from([f"{b}.{a}" for b in PLAN.behaviors for a in PLAN.actions]),
    ),
    max_size=40,
)


def step(state: RunState, move: str) -> RunState:
    if move == "close":
        return close(PLAN, state, at=AT).state
    if move == "reject":
        return reject(state)
    if "." in move:
        return open_action(PLAN, state, at(move), at=AT).state
    return select_behavior(PLAN, state, move)


@given(moves=MOVES)
def test_every_change_counts_the_version_on_and_stays_within_the_plan(moves: list[str]) -> None:
    state = begin(PLAN)
    for move in moves:
        after = step(state, move)
        assert PLAN.contains(after.current)
        assert after.pointers[after.current.behavior] == after.current.action
        assert after == state or after.version == state.version + 1
        assert replace(after, version=0) != replace(state, version=0) or after == state or move == "close"
        state = after
