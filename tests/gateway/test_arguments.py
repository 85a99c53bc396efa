from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare import ErrorCode
from trysquare.core.errors import InvalidArguments
from trysquare.gateway.arguments import GATEWAY_ARGUMENTS, SERVER_ARGUMENTS

JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3))


def _parsed(**raw: Any) -> Any:
    return SERVER_ARGUMENTS.parse("mcp_github", raw)


def _refused(**raw: Any) -> InvalidArguments:
    with pytest.raises(InvalidArguments) as raised:
        _parsed(**raw)
    return raised.value


def test_a_call_without_arguments_lists() -> None:
    call = _parsed()
    assert (call.action, call.tool_name, call.tool_inputs) == ("list", None, {})


@given(st.dictionaries(st.sampled_from(["value", "args", "arguments", "input", "a", "tool_inputs"]), JSON, max_size=3))
def test_the_inputs_of_a_tool_arrive_untouched_whatever_they_are_called(inputs: dict[str, Any]) -> None:
    call = _parsed(action="execute", tool_name="echo", tool_inputs=inputs)
    assert call.tool_inputs == inputs


def test_inputs_that_came_as_json_text_are_read() -> None:
    assert _parsed(action="execute", tool_name="add", tool_inputs='{"a": 1}').tool_inputs == {"a": 1}


@pytest.mark.parametrize("inputs", ["[1, 2]", "no json", 5, [1]])
def test_inputs_that_are_no_object_are_refused(inputs: Any) -> None:
    assert "`tool_inputs` must be object" in _refused(action="execute", tool_name="add", tool_inputs=inputs).message


def test_null_means_that_an_argument_was_not_given() -> None:
    assert _parsed(action="list", tool_name=None, tool_inputs=None, detail=None).detail is None


def test_inputs_outside_tool_inputs_are_refused_with_the_corrected_call() -> None:
    error = _refused(action="execute", tool_name="add", a=1, b=2)
    assert error.code == ErrorCode.VALIDATION_UNKNOWN_PARAM
    assert error.next == {
        "tool": "mcp_github",
        "arguments": {"action": "execute", "tool_name": "add", "tool_inputs": {"a": 1, "b": 2}},
    }


def test_a_misspelt_argument_or_action_is_repaired_in_the_corrected_call() -> None:
    error = _refused(action="exec", toolname="add")
    assert error.next == {"tool": "mcp_github", "arguments": {"action": "execute", "tool_name": "add"}}


def test_the_one_tool_over_all_takes_a_server_and_a_query() -> None:
    call = GATEWAY_ARGUMENTS.parse("mcp", {"server": "github", "query": "open an issue"})
    assert (call.action, call.server, call.query) == ("list", "github", "open an issue")
