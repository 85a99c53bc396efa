"""Expressions that only read are told from those that call or change something."""

from __future__ import annotations

import pytest

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.debug.guarding import Effect, effect_of, log_expressions, require_reading


@pytest.mark.parametrize(
    "expression",
    ["a", "self.items[3].tags", "a + b * 2", "len(items) > 3 and not done", "[x for x in rows if x.ok]", "{'k': v}",
     "sorted(rows, key=None)[0]", "x if y else z", "row.__class__.__name__"],
)  # fmt: skip
def test_reading_python_is_told_as_reading(expression: str) -> None:
    assert effect_of(expression, "python") is Effect.READS


@pytest.mark.parametrize(
    "expression",
    ["f()", "items.pop()", "os.system('x')", "open('f')", "eval('1')", "__import__('os')", "(lambda: 1)()",
     "getattr(x, 'y')", "().__class__.__subclasses__", "x.__globals__", "[f(x) for x in rows]"],
)  # fmt: skip
def test_calls_in_python_are_told_as_calls(expression: str) -> None:
    assert effect_of(expression, "python") is Effect.CALLS


@pytest.mark.parametrize("expression", ["a = 1", "(a := 1)", "del a", "import os", "await x", "", "a +", "x; y"])
def test_what_is_no_plain_expression_is_told_as_writing(expression: str) -> None:
    assert effect_of(expression, "python") is Effect.WRITES


@pytest.mark.parametrize(
    ("expression", "effect"),
    [("a.b[3]->c", Effect.READS), ("sizeof(x) == 4", Effect.READS), ("a == b", Effect.READS), ("a <= b", Effect.READS),
     ("a => b", Effect.WRITES), ("i++", Effect.WRITES), ("a = b", Effect.WRITES), ("a += b", Effect.WRITES),
     ("f(x)", Effect.CALLS), ("obj.method ()", Effect.CALLS), ("'f(x)' == a", Effect.READS),
     ("len(xs) > 2", Effect.READS), ("x; y", Effect.WRITES), ("list[0](1)", Effect.CALLS)],
)  # fmt: skip
def test_other_languages_are_told_by_their_common_signs(expression: str, effect: Effect) -> None:
    assert effect_of(expression, "c") is effect


def test_a_session_that_only_reads_refuses_a_call_and_says_what_to_do() -> None:
    with pytest.raises(ToolError) as refused:
        require_reading("items.clear()", "python", allowed=False)
    assert refused.value.code is ErrorCode.EXECUTION_NOT_ALLOWED
    assert "allow_side_effects" in (refused.value.instruction or "")


def test_a_session_that_allows_side_effects_takes_everything() -> None:
    require_reading("items.clear()", "python", allowed=True)


def test_the_expressions_of_a_log_message_are_those_in_braces() -> None:
    assert log_expressions("i is {i} of {len(rows)}, {{not this}}") == ["i", "len(rows)"]
