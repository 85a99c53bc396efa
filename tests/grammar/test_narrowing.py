from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.grammar.small_tokenizer import allowed_by, small_engine, take_all
from tests.grammar.tools_for_calls import closed
from trysquare.grammar import CallMatcher, CallWalk, Facts, narrowed_tools
from trysquare.grammar.calls.call_set import CallSet
from trysquare.grammar.narrowing import WORKSPACE_PATH, narrowed

FILE = {"type": "string", "x-trysquare-kind": "existing_file"}
BRANCH = {"type": "string", "x-trysquare-kind": "branch"}
FACTS = Facts(files=("a.py", "src/b.py"), branches=("main", "dev"), most_lines=40)


def fits(schema: Any, value: Any) -> bool:
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def test_an_existing_file_becomes_an_enumeration():
    schema = narrowed(closed(path=FILE), FACTS)
    assert schema["properties"]["path"] == {"type": "string", "enum": ["a.py", "src/b.py"]}


def test_what_is_not_marked_stays_as_it_is():
    schema = closed(path={"type": "string", "description": "x-trysquare-kind"}, n={"type": "integer"})
    assert narrowed(schema, FACTS) == schema


@pytest.mark.parametrize(
    "marked",
    [
        {"anyOf": [{"type": "string"}, {"type": "null"}], "x-trysquare-kind": "branch"},
        {"type": ["string", "null"], "x-trysquare-kind": "branch"},
    ],
)
def test_an_argument_that_may_be_null_may_still_be_null(marked: dict[str, Any]):
    schema = narrowed(marked, FACTS)
    assert [fits(schema, value) for value in ("main", None, "other")] == [True, True, False]


def test_the_items_of_an_array_are_narrowed():
    schema = narrowed({"type": "array", "items": {"type": "string"}, "x-trysquare-kind": "existing_file"}, FACTS)
    assert [fits(schema, value) for value in (["a.py"], [], ["c.py"])] == [True, True, False]


def test_a_line_lies_within_the_longest_file():
    schema = narrowed({"type": "integer", "minimum": 0, "x-trysquare-kind": "line"}, FACTS)
    assert [fits(schema, value) for value in (0, 1, 40, 41)] == [False, True, True, False]


def test_marks_in_the_branches_of_a_tool_with_actions_and_in_definitions_are_found():
    schema = {
        "anyOf": [closed(action={"const": "read"}, path={"$ref": "#/$defs/file"}), closed(action={"const": "log"})],
        "$defs": {"file": FILE},
    }
    shown = narrowed(schema, FACTS)
    assert fits(shown, {"action": "read", "path": "a.py"})
    assert not fits(shown, {"action": "read", "path": "c.py"})


def test_what_is_not_known_is_not_narrowed_but_a_file_always_lies_in_the_workspace():
    assert narrowed(closed(ref=BRANCH), Facts()) == closed(ref={"type": "string"})
    assert narrowed(FILE, Facts()) == {"type": "string", "pattern": WORKSPACE_PATH}


def test_an_action_for_which_nothing_exists_cannot_be_written():
    tools = {"git": {"anyOf": [closed(action={"const": "switch"}, to=BRANCH), closed(action={"const": "status"})]}}
    calls = CallSet(tools=narrowed_tools(tools, Facts(branches=())))
    walk = CallWalk(calls)
    piece = walk.next(tokens_left=500)
    assert piece is not None
    assert piece.forced == '{"name":"git","args":{"action":"status"}}'


def test_denied_tools_and_tools_that_cannot_be_called_are_left_out():
    tools = {"read": closed(path=FILE), "finish": closed(), "now": closed()}
    assert list(narrowed_tools(tools, Facts(files=()), denied={"finish"})) == ["now"]
    assert list(narrowed_tools(tools, FACTS)) == ["read", "finish", "now"]


def test_finish_can_only_be_named_where_it_is_not_denied():
    tools = {"read": closed(path=FILE), "finish": closed()}
    for denied, letters in ({"finish"}, {b"r"}), (set[str](), {b"r", b"f"}):
        matcher = CallMatcher(CallSet(tools=narrowed_tools(tools, FACTS, denied=denied)), small_engine())
        take_all(matcher, list(b'{"name":"'))
        assert {matcher.bytes_of(token)[:1] for token in allowed_by(matcher)} == letters


def test_one_of_ten_thousand_files_can_be_written_and_no_other():
    files = [f"src/part_{number % 97}/module_{number * 7919 % 100_003}.py" for number in range(10_000)]
    calls = CallSet(tools={"read": narrowed(closed(path=FILE), Facts(files=files))})
    matcher = CallMatcher(calls, small_engine())
    take_all(matcher, list(f'{{"name":"read","args":{{"path":"{files[4711]}'.encode()))
    assert {matcher.bytes_of(token)[:1] for token in allowed_by(matcher)} == {b'"'}
    walk = CallWalk(calls)
    while (piece := walk.next(tokens_left=900)) is not None:
        walk.take(piece.forced if piece.forced is not None else piece.choices[-1][:3])
    assert any(f'"path":"{file}"' in walk.text for file in files)


@given(st.text(alphabet="ab./\\~ \n", max_size=8) | st.text(max_size=8))
def test_a_workspace_path_never_leads_out(path: str):
    inside = re.fullmatch(WORKSPACE_PATH, path) is not None
    steps = PurePosixPath(path).parts
    leads_out = path.startswith("/") or ".." in steps or "\\" in path
    assert not (inside and leads_out)


@given(st.lists(st.text(alphabet="ab.-_ ", min_size=1, max_size=4), min_size=1, max_size=4))
def test_every_plain_relative_path_is_a_workspace_path(steps: list[str]):
    path = "/".join(step for step in steps if step not in (".", "..")) or "."
    assert re.fullmatch(WORKSPACE_PATH, path)
