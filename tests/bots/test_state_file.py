"""What a state file says, whoever wrote it: which action is current, and whether its parts agree."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from tests.bots.faults.desk import AT, BOT, PLAN, at
from trysquare.bots.workflow.machine import Entry, RunState, begin, close, open_action
from trysquare.bots.workflow.state_file import (
    MAIN,
    Imported,
    UnreadableState,
    dump_state,
    entry_line,
    parse_state,
    run_part,
)

EARLIER, LATER = "2026-11-15T11:00:00", "2026-11-15T13:00:00"


def parse(**fields: Any) -> Imported:
    return parse_state(PLAN, json.dumps(fields))


def current(imported: Imported, run: str = MAIN) -> str:
    position = imported.runs[run].current
    return f"{position.behavior}.{position.action}"


def done(path: str, when: str = AT, **more: Any) -> dict[str, Any]:
    return {"action_state": f"{BOT}.{path}", "timestamp": when, **more}


def test_a_valid_pointer_wins_even_ahead_of_what_was_completed() -> None:
    found = parse(
        current_behavior=f"{BOT}.discovery",
        current_action=f"{BOT}.discovery.validate_rules",
        timestamp=AT,
        completed_actions=[done("shape.initialize_project")],
    )
    assert current(found) == "discovery.validate_rules"
    assert found.inconsistent == ()


def test_a_pointer_wins_over_an_earlier_completion_of_the_same_action_because_it_was_reopened() -> None:
    found = parse(
        current_action=f"{BOT}.shape.gather_context",
        timestamp=LATER,
        completed_actions=[done("shape.gather_context", EARLIER), done("shape.validate_rules", EARLIER)],
    )
    assert (current(found), found.inconsistent) == ("shape.gather_context", ())


def test_a_completion_newer_than_the_pointer_moves_it_on_and_says_so() -> None:
    found = parse(
        current_action=f"{BOT}.shape.gather_context",
        timestamp=EARLIER,
        completed_actions=[done("shape.gather_context", LATER)],
    )
    assert current(found) == "shape.validate_rules"
    assert "completed after" in found.inconsistent[0]


def test_a_newer_completion_of_the_last_action_moves_on_to_the_next_behavior() -> None:
    found = parse(
        current_action=f"{BOT}.shape.validate_rules",
        timestamp=EARLIER,
        completed_actions=[done("shape.validate_rules", LATER)],
    )
    assert current(found) == "discovery.initialize_project"


def test_a_completed_pointer_without_a_time_stays_and_is_called_inconsistent() -> None:
    found = parse(current_action=f"{BOT}.shape.gather_context", completed_actions=[done("shape.gather_context", LATER)])
    assert current(found) == "shape.gather_context"
    assert "unknown time" in found.inconsistent[0]


def test_versions_are_compared_and_clocks_are_not_where_there_is_a_version() -> None:
    fields = {"current_action": f"{BOT}.shape.gather_context", "timestamp": EARLIER}
    kept = parse(**fields, version=5, completed_actions=[done("shape.gather_context", LATER, version=4)])
    moved = parse(**fields, version=5, completed_actions=[done("shape.gather_context", "", version=6)])
    assert (current(kept), kept.inconsistent) == ("shape.gather_context", ())
    assert current(moved) == "shape.validate_rules"


@pytest.mark.parametrize(
    "pointer",
    [
        None,
        "",
        "shape.gather_context",
        f"{BOT}.nowhere.gather_context",
        f"{BOT}.shape.nothing",
        f"{BOT}.shape.correct_bot",
        f"{BOT}.shape.gather_context.more",
        7,
        ["x"],
    ],
)
def test_a_pointer_that_is_not_valid_is_never_used_and_completions_decide(pointer: Any) -> None:
    found = parse(
        current_behavior=f"{BOT}.shape", current_action=pointer, completed_actions=[done("shape.initialize_project")]
    )
    assert current(found) == "shape.gather_context"


def test_without_pointer_and_completions_the_first_action_is_current() -> None:
    assert current(parse(current_behavior=f"{BOT}.shape", completed_actions=[])) == "shape.initialize_project"


def test_without_a_pointer_the_behavior_of_the_last_completion_goes_on() -> None:
    found = parse(completed_actions=[done("shape.gather_context"), done("discovery.initialize_project")])
    assert current(found) == "discovery.gather_context"


def test_reopened_marks_are_not_completions() -> None:
    found = parse(
        current_behavior=f"{BOT}.shape",
        completed_actions=[
            done("shape.initialize_project"),
            done("shape.gather_context"),
            done("shape.gather_context", reopened=True),
        ],
    )
    assert current(found) == "shape.gather_context"


def test_independent_and_unknown_actions_are_left_out_of_the_history_and_said() -> None:
    found = parse(
        current_action=f"{BOT}.shape.gather_context",
        completed_actions=[done("shape.correct_bot"), done("shape.initialize_project"), "nonsense"],
    )
    assert [entry.position for entry in found.histories[MAIN]] == [at("shape.initialize_project")]
    assert [note.split(" ", 1)[0] for note in found.inconsistent] == ["completed_actions[0]", "completed_actions[2]"]


def test_a_line_added_by_hand_counts_as_newer_than_those_above_it() -> None:
    found = parse(
        current_behavior=f"{BOT}.shape",
        completed_actions=[done("shape.gather_context", version=40), done("shape.initialize_project")],
    )
    assert [entry.version for entry in found.histories[MAIN]] == [40, 41]


def test_each_behavior_keeps_its_own_pointer() -> None:
    found = parse(
        current_action=f"{BOT}.discovery.gather_context",
        behaviors={"shape": {"current_action": "validate_rules"}, "gone": {"current_action": "x"}},
    )
    assert found.runs[MAIN].pointers == {"shape": "validate_rules", "discovery": "gather_context"}


def test_naive_times_are_read_as_utc() -> None:
    found = parse(
        current_action=f"{BOT}.shape.gather_context",
        timestamp="2026-11-15T12:00:00",
        completed_actions=[done("shape.gather_context", "2026-11-15T12:00:00+02:00")],
    )
    assert current(found) == "shape.gather_context", "two hours east of UTC is earlier"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not JSON"),
        ('{"current_action": "story', "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "none of the fields"),
        ('{"schema": 99, "current_action": ""}', "schema is 99"),
        ('{"current_action": "other_bot.shape.gather_context"}', "belongs to another bot, 'other_bot'"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_state_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(UnreadableState, match=why):
        parse_state(PLAN, text)


def test_versions_that_no_run_can_have_are_ignored() -> None:
    for version in (-1, 2**60, True, "7", 1.5):
        assert parse(current_action=f"{BOT}.shape.gather_context", version=version).runs[MAIN].version == 0


def states() -> st.SearchStrategy[tuple[RunState, list[Entry]]]:
    """States that moves really lead to, with their histories."""
    moves = st.lists(st.sampled_from(["close", *(f"{b}.{a}" for b in PLAN.behaviors for a in PLAN.actions)]))

    def walk(steps: list[str]) -> tuple[RunState, list[Entry]]:
        state, history = begin(PLAN), list[Entry]()
        for step in steps:
            made = close(PLAN, state, at=AT) if step == "close" else open_action(PLAN, state, at(step), at=AT)
            state = made.state
            history.extend(made.added)
        return state, history

    return moves.map(walk)


def dumped(runs: Mapping[str, tuple[RunState, Sequence[Entry]]]) -> str:
    """The file of runs and their histories."""
    parts: dict[str, bytes] = {}
    for name, (state, history) in runs.items():
        lines = [entry_line(PLAN, name, entry) for entry in history]
        parts[name] = run_part(PLAN, name, state, at=AT, lines=lines, complete=False)
    return dump_state(parts).decode("utf-8")


def test_the_file_is_laid_out_for_reading() -> None:
    state, history = begin(PLAN), list[Entry]()
    for _ in range(2):
        closed = close(PLAN, state, at=AT)
        state, history = closed.state, [*history, *closed.added]

    assert dumped({MAIN: (state, history), "story-12": (begin(PLAN), [])}) == snapshot("""\
{
  "current_behavior": "story_bot.shape",
  "current_action": "story_bot.shape.validate_rules",
  "timestamp": "2026-11-15T12:00:00.000Z",
  "completed_actions": [
    {"action_state": "story_bot.shape.initialize_project", "timestamp": "2026-11-15T12:00:00.000Z", "version": 1, "approval": "claimed", "delivered": false},
    {"action_state": "story_bot.shape.gather_context", "timestamp": "2026-11-15T12:00:00.000Z", "version": 2, "approval": "claimed", "delivered": false}
  ],
  "version": 2,
  "behaviors": {
    "shape": {"current_action": "validate_rules"}
  },
  "schema": 1,
  "runs": {
    "story-12": {
      "current_behavior": "story_bot.shape",
      "current_action": "story_bot.shape.initialize_project",
      "timestamp": "2026-11-15T12:00:00.000Z",
      "completed_actions": [],
      "version": 0,
      "behaviors": {
        "shape": {"current_action": "initialize_project"}
      }
    }
  }
}
""")  # noqa: E501


@given(main=states(), other=states())
def test_what_is_written_reads_back_the_same(
    main: tuple[RunState, list[Entry]], other: tuple[RunState, list[Entry]]
) -> None:
    walked = {MAIN: main, "story-12": other}
    text = dumped(walked)
    read = parse_state(PLAN, text)
    assert read.inconsistent == ()
    assert read.runs == {name: state for name, (state, _) in walked.items()}
    assert read.histories == {name: tuple(history) for name, (_, history) in walked.items()}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
FIELDS = st.sampled_from(
    ["current_action", "current_behavior", "completed_actions", "timestamp", "version", "behaviors", "runs", "schema"]
)


@given(document=st.dictionaries(FIELDS | st.text(), JSON))
def test_any_json_is_read_or_refused_and_what_is_read_can_be_written(document: dict[str, Any]) -> None:
    try:
        found = parse_state(PLAN, json.dumps(document))
    except UnreadableState:
        return
    again = parse_state(PLAN, dumped({name: (state, found.histories[name]) for name, state in found.runs.items()}))
    assert (again.runs.keys(), again.histories) == (found.runs.keys(), found.histories)
    assert all(PLAN.contains(state.current) for state in found.runs.values())
