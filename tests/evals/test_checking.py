"""The checker of bfcl-eval says what is right: its own answers are, and calls that miss are not."""

from __future__ import annotations

import sys

import pytest

from evals.checking import is_right
from evals.questions import Question, read_questions
from tests.grammar.bfcl import find_wheel
from trysquare.core.json import JsonObject


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    # A wheel that is pure Python can be imported as it is.
    monkeypatch.syspath_prepend(str(find_wheel()))
    for name in [name for name in sys.modules if name.partition(".")[0] == "bfcl_eval"]:
        monkeypatch.delitem(sys.modules, name)


def expected(question: Question) -> list[JsonObject]:
    """The calls that the answers ask for; where an argument may be left out, it is."""
    return [
        {
            "name": name.replace(".", "_"),
            "args": {key: values[0] for key, values in arguments.items() if "" not in values},
        }
        for call in question.right
        for name, arguments in call.items()
    ]


def test_what_the_answers_ask_for_is_right_in_every_set() -> None:
    questions = read_questions(5)
    assert {question.set for question in questions} == {"simple", "multiple", "parallel"}
    for question in questions:
        assert is_right(question, expected(question)), question.id


def test_the_order_of_parallel_calls_does_not_matter_and_their_number_does() -> None:
    [question] = read_questions(1, sets=["parallel"])
    calls = expected(question)
    assert len(calls) == 2
    assert is_right(question, calls[::-1])
    assert not is_right(question, calls[:1])


def test_no_call_a_wrong_value_and_a_wrong_name_are_wrong() -> None:
    [question] = read_questions(1, sets=["simple"])
    [call] = expected(question)
    assert not is_right(question, [])
    assert not is_right(question, [{**call, "name": "other"}])
    assert not is_right(question, [{**call, "args": {**call["args"], "base": 11}}])
    assert not is_right(question, [{**call, "args": {"base": 10}}])
