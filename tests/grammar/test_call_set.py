from __future__ import annotations

import pytest

from trysquare import ErrorCode, ToolError
from trysquare.grammar.calls.call_set import CallSet


def test_a_set_without_tools_is_refused_by_name():
    with pytest.raises(ToolError, match="No tools") as refused:
        CallSet(tools={})
    assert refused.value.code is ErrorCode.GRAMMAR_UNSUPPORTED


def test_an_answer_must_fit_one_call():
    with pytest.raises(ToolError, match="most_calls is 0"):
        CallSet(tools={"now": {"type": "object"}}, parallel=True, most_calls=0)


def test_what_may_follow_a_call_depends_on_how_many_there_are():
    calls = CallSet(tools={"now": {"type": "object"}}, parallel=True, most_calls=2)
    assert (calls.endings(1), calls.endings(2)) == ((",", "]"), ("]",))
    assert CallSet(tools=calls.tools).endings(1) == ("",)
