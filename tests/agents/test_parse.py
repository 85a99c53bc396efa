"""Parsing: calls are found in whatever a model writes, and nothing that looks like one is lost without a word."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.agents.parsing import MAX_TEXT, KnownNames, ParsedText, dropped_message, parse_calls

NAMES = KnownNames(
    {
        "file": ["read", "write"],
        "code_edit": ["get_lines"],
        "search": ["grep", "find_files"],
        "git": ["status"],
        "bash": [],
    }
)


def parsed(text: str) -> ParsedText:
    return parse_calls(text, NAMES)


def calls(text: str) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, call.arguments) for call in parsed(text).calls]


READ = ("file", {"action": "read", "path": "a.py"})
WRITTEN = '{"name": "file", "args": {"action": "read", "path": "a.py"}}'


@pytest.mark.parametrize(
    "text",
    [
        WRITTEN,
        f"[{WRITTEN}]",
        f"  {WRITTEN}\n",
        '{"tool": "file", "args": {"action": "read", "path": "a.py"}}',
        '{"tool": "file", "arguments": {"action": "read", "path": "a.py"}}',
        '{"name": "file", "arguments": "{\\"action\\": \\"read\\", \\"path\\": \\"a.py\\"}"}',
        '{"type": "function", "function": {"name": "file", "arguments": {"action": "read", "path": "a.py"}}}',
        '{"tool": "file", "action": "read", "path": "a.py"}',
        f"I read it first.\n```json\n{WRITTEN}\n```\n",
        f"I read it first.\n```tool_call\n{WRITTEN}\n```\nThen I go on.",
        f"~~~\n{WRITTEN}\n~~~",
        f"```json\n{WRITTEN}",
        f"First:\n{WRITTEN}\n",
        f"So:\n[{WRITTEN}]",
        f"<tool_call>{WRITTEN}</tool_call>",
        f"<tool_call>\n{WRITTEN}\n",
        f"I read it: <tool_call>{WRITTEN}</tool_call> and wait.",
        f"<|tool_call|>{WRITTEN}<|/tool_call|>",
        f"Braces such as {{ and }} do not matter:\n{WRITTEN}",
        f"<think>I could {WRITTEN.replace('read', 'write')}.</think>\n{WRITTEN}",
        f"I should {WRITTEN.replace('read', 'write')}.\n</think>\nSo:\n{WRITTEN}",
        f"<think>a <think>b</think> {WRITTEN.replace('read', 'write')}</think>{WRITTEN}",
        f"[THINK]{WRITTEN.replace('read', 'write')}[/THINK]{WRITTEN}",
        f"<|channel|>analysis<|message|>{WRITTEN.replace('read', 'write')}<|end|><|channel|>final<|message|>{WRITTEN}",
        'It is\n{\n  "name": "file",\n  "args": {\n    "action": "read",\n    "path": "a.py"\n  }\n}\n',
        '{"name": "file_read", "args": {"path": "a.py"}}',
        '{"name": "File", "args": {"action": "read", "path": "a.py"}}',
        '{"name": "functions.file", "args": {"action": "read", "path": "a.py"}}',
    ],
)
def test_a_call_is_found_however_it_is_written(text: str) -> None:
    assert calls(text) == [READ]
    assert all("write" in piece.text for piece in parsed(text).dropped), "what was only thought"


@pytest.mark.parametrize(
    "text",
    [
        f"I will call {WRITTEN} now.",
        f"I will not call it: {WRITTEN}",
        f"The file says '{WRITTEN}'.",
        f"The file says:\n{WRITTEN}\nI do not do that.",
        f"The file says:\n```json\n{WRITTEN}\n```\nI do not do that.",
        f"The page:\n> {WRITTEN}",
        f"- {WRITTEN}",
        f"```python\n{WRITTEN}\n```",
        f"```text\n{WRITTEN}\n```\nThat was it.",
        f"````markdown\n```json\n{WRITTEN}\n```\n````",
        f"<think>{WRITTEN}</think>",
        f"<think>\n{WRITTEN}\n",
        f"<think>\n<tool_call>{WRITTEN}</tool_call>\n",
        f"{WRITTEN}\n</think>\nNothing is to be done.",
        f"<think>a<think>b</think>\n{WRITTEN}\n</think>",
        f"<thinking>\n```tool_call\n{WRITTEN}\n```\n</thinking>",
        f"<reasoning>{WRITTEN}</reasoning>",
        f"[THINK]{WRITTEN}[/THINK]",
        f"<|channel|>analysis<|message|>{WRITTEN}",
        f"First:\n{WRITTEN}\nThen:\n{WRITTEN}",
    ],
)
def test_calls_in_quotes_thoughts_or_prose_are_not_run_but_reported(text: str) -> None:
    found = parsed(text)
    assert not found.calls
    assert found.dropped
    assert all("send it again" in piece.reason for piece in found.dropped)


def test_calls_stand_in_the_order_of_the_text_whatever_way_found_them() -> None:
    text = (
        'They are:\n<tool_call>{"name": "bash", "args": {"command": "1"}}</tool_call>\n'
        '```\n{"name": "bash", "args": {"command": "2"}}\n```\n'
        '{"name": "bash", "args": {"command": "3"}}\n'
        '[{"name": "bash", "args": {"command": "4"}}, {"name": "bash", "args": {"command": "5"}}]'
    )
    assert [arguments["command"] for _, arguments in calls(text)] == ["1", "2", "3", "4", "5"]


def test_a_broken_piece_does_not_cost_the_other_calls() -> None:
    found = parsed(f"{WRITTEN}\n{{'name': 'file', 'args': {{}}}}\n{WRITTEN}")
    assert [call.name for call in found.calls] == ["file", "file"]
    assert ["it is not JSON" in piece.reason for piece in found.dropped] == [True]


def test_braces_inside_of_strings_do_not_end_a_call() -> None:
    text = 'Write it:\n{"name": "bash", "args": {"command": "echo \\"}}{{\\" {"}}'
    assert calls(text) == [("bash", {"command": 'echo "}}{{" {'})]


def test_json_that_is_no_call_is_not_mistaken_for_one() -> None:
    found = parsed('The file holds {"port": 8080, "hosts": ["a"]} and {x: 1}.')
    assert found == ParsedText()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"name": "file", "args": {"action": "read", "path": "a.py"', "not closed"),
        ('Now {"name": "file", "args": {action: read}} please', "it is not JSON"),
        ("Now {'name': 'file', 'args': {}} please", "it is not JSON"),
        ('{"name": "nothing_like_it", "args": {}}', "unknown tool `nothing_like_it`"),
        ('{"name": "file", "args": 3}', "`args` is not an object"),
        ('{"name": "file", "arguments": "read a.py"}', "not JSON"),
        ('{"function": 3, "args": {}}', "neither `name` nor `tool`"),
        ("[1]", "a call is an object"),
    ],
)
def test_what_looks_like_a_call_and_is_none_is_dropped_with_the_reason(text: str, reason: str) -> None:
    found = parsed(text)
    assert not found.calls
    assert len(found.dropped) == 1
    assert reason in found.dropped[0].reason


def test_one_wrong_call_does_not_cost_the_others() -> None:
    found = parsed(f'[{WRITTEN}, {{"name": "unheard_of", "args": {{}}}}, {WRITTEN}]')
    assert [call.name for call in found.calls] == ["file", "file"]
    assert [call.id for call in found.calls] == ["text-1", "text-2"]
    _, dropped = (dropped_message(found) or "").splitlines()
    assert dropped.startswith('- {"name": "unheard_of", "args": {}}: ')
    assert "`unheard_of`" in dropped
    assert "file, code_edit, search, git, bash" in dropped


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("files", "file"),
        ("code-edit", "code_edit"),
        ("codeedit", "code_edit"),
        ("serach", "search"),
        ("grep", "search"),
        ("search.grep", "search"),
        ("git_status", "git"),
    ],
)
def test_a_nearly_right_name_is_repaired_and_reported(name: str, meant: str) -> None:
    found = parsed(json.dumps({"name": name, "args": {}}))
    assert [call.name for call in found.calls] == [meant]
    (repair,) = found.repairs
    assert f"`{name}`" in repair
    assert f"`{meant}`" in repair


def test_an_action_in_place_of_a_name_becomes_the_action_unless_the_call_gives_one() -> None:
    assert calls('{"name": "grep", "args": {"pattern": "x"}}') == [("search", {"action": "grep", "pattern": "x"})]
    assert calls('{"name": "grep", "args": {"action": "find_files"}}') == [("search", {"action": "find_files"})]


@pytest.mark.parametrize("name", ["read_file", "get", "", "x", "file_explode", "bash " * 40])
def test_a_name_that_could_be_anything_is_not_guessed(name: str) -> None:
    known = KnownNames({"read_files": [], "read_filed": [], "file": ["read"], "get_a": ["get"], "get_b": ["get"]})
    found = parse_calls(json.dumps({"name": name, "args": {}}), known)
    assert not found.calls
    assert found.dropped


def test_a_text_of_braces_alone_is_read_quickly_and_to_no_effect() -> None:
    assert parsed("{" * 100_000) == ParsedText()
    assert parsed('{"a":' * 40_000) == ParsedText()
    assert not parsed("[" * 100_000).calls


def test_only_the_beginning_of_an_endless_text_is_read_and_that_is_reported() -> None:
    found = parsed(f"{WRITTEN}\n" + "x" * MAX_TEXT)
    assert not found.calls, "nobody knows what comes behind it"
    assert "the rest was ignored" in found.dropped[0].reason


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_ARGUMENTS = st.dictionaries(st.text(min_size=1, max_size=8), _VALUES, max_size=4)


@given(
    arguments=st.lists(_ARGUMENTS, min_size=1, max_size=4),
    around=st.text(alphabet=st.characters(exclude_characters='{}[]"`~<>◁▷'), max_size=30),
    fenced=st.booleans(),
    indent=st.sampled_from([None, 2]),
)
def test_every_call_that_json_can_hold_is_found_behind_any_words(
    arguments: list[dict[str, Any]], around: str, fenced: bool, indent: int | None
) -> None:
    written = [json.dumps({"name": "bash", "args": one}, indent=indent) for one in arguments]
    text = around + "\n" + "\n".join(f"```json\n{one}\n```" if fenced else one for one in written)
    assert [found for _, found in calls(text)] == arguments


@given(
    argument=_ARGUMENTS,
    before=st.text(alphabet=st.characters(categories=("L",)), min_size=1, max_size=30),
    after=st.text(alphabet=st.characters(categories=("L",)), min_size=1, max_size=30),
)
def test_no_call_in_the_middle_of_words_is_run(argument: dict[str, Any], before: str, after: str) -> None:
    written = json.dumps({"name": "bash", "args": argument})
    for text in (f"{before} {written} {after}", f"{before} {written}", f"{before}\n{written}\n{after}"):
        assert not calls(text)


@given(st.text(max_size=300))
def test_any_text_at_all_is_read_without_an_error(text: str) -> None:
    found = parsed(text)
    assert all(call.name in {"file", "code_edit", "search", "git", "bash"} for call in found.calls)
