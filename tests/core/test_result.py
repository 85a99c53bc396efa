"""Result: what a tool answers, as JSON and as text."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from pydantic import BaseModel

from trysquare import ErrorCode, Result, ToolError
from trysquare.core.result import jsonable

HALF = "\ud800"


def nested(levels: int) -> list[Any]:
    deep: list[Any] = []
    for _ in range(levels):
        deep = [deep]
    return deep


def test_ok_is_a_success_with_its_value() -> None:
    result = Result.ok("done", message="All well.", instruction="Show it.")
    assert (result.success, result.value, result.message, result.instruction) == (True, "done", "All well.", "Show it.")
    assert result.to_json() == snapshot(
        {"success": True, "value": "done", "message": "All well.", "instruction": "Show it."}
    )


def test_a_failure_tells_its_error_type_code_and_exception() -> None:
    result = Result.failure("No such file.", "not_found", exception=KeyError("x"), message="Sorry.", instruction="Ask.")
    assert not result.success
    assert result.to_json() == snapshot(
        {
            "success": False,
            "error": {"code": "TOOL_FAILED", "message": "No such file."},
            "error_type": "not_found",
            "exception_type": "KeyError",
            "exception_message": "'x'",
            "message": "Sorry.",
            "instruction": "Ask.",
        }
    )


def test_the_error_type_of_a_failure_follows_its_code_unless_it_is_given() -> None:
    assert Result.failure("gone", code=ErrorCode.STATE_CONFLICT).error_type == "state_conflict"


def test_json_text_is_compact_and_keeps_other_scripts_readable() -> None:
    assert Result.ok({"city": "Zürich", "名": 1}).to_json_str() == '{"success":true,"value":{"city":"Zürich","名":1}}'


def test_optional_parts_stand_in_the_envelope_only_if_they_are_set() -> None:
    assert Result.ok().to_json() == {"success": True}
    full = Result.ok(0, warnings=("old",), next={"tool": "t", "arguments": {}}, fields={"status": "open"})
    assert full.to_json() == {
        "success": True,
        "value": 0,
        "next": {"tool": "t", "arguments": {}},
        "warnings": ["old"],
        "status": "open",
    }


def test_a_raised_tool_error_becomes_the_same_failure() -> None:
    error = ToolError("No.", code=ErrorCode.STATE_CONFLICT, instruction="Wait.", next={"tool": "t"}, fields={"at": 3})
    assert Result.from_error(error).to_json() == {
        "success": False,
        "error": {"code": "STATE_CONFLICT", "message": "No."},
        "error_type": "state_conflict",
        "instruction": "Wait.",
        "next": {"tool": "t"},
        "at": 3,
    }


def test_the_text_of_a_result_says_everything_that_the_json_says() -> None:
    result = Result(
        success=False, value={"n": [1, 2]}, message="Half done.", instruction="Go on.", error="Stopped.",
        error_type="halted", code=ErrorCode.TOOL_FAILED, exception=ValueError("why"), warnings=("slow",),
        next={"tool": "go", "arguments": {"from": 2}}, fields={"status": "open"},
    )  # fmt: skip
    assert result.to_text() == snapshot("""\
Error TOOL_FAILED (halted): Stopped.
Half done.
{"n":[1,2]}
{"exception_type":"ValueError","exception_message":"why","status":"open"}
Warning: slow
Instruction: Go on.
Next: {"tool":"go","arguments":{"from":2}}\
""")


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (Result.ok(), "Done. The tool returned no value."),
        (Result.ok(""), ""),
        (Result.ok("plain text"), "plain text"),
        (Result.ok(False), "false"),
        (Result.ok([]), "[]"),
        (Result.failure("No."), "Error TOOL_FAILED: No."),
    ],
)
def test_short_results_have_short_texts(result: Result[Any], text: str) -> None:
    assert result.to_text() == text


class Point(BaseModel):
    x: int
    where: Path = Path("/a")


@dataclasses.dataclass
class Spot:
    y: int


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Point(x=1), {"x": 1, "where": "/a"}),
        ([Spot(2)], [{"y": 2}]),
        ({1: (2, 3)}, {"1": [2, 3]}),
        (b"text", "text"),
        ([b"\xff\xfe"], ["[application/octet-stream, 2 bytes]"]),
        (float("nan"), "NaN"),
        ([float("-inf")], ["-Infinity"]),
        ([HALF, {"k" + HALF: HALF}], ["\ufffd", {"k\ufffd": "\ufffd"}]),
        ([2**64], [2**64]),
    ],
)
def test_values_become_plain_json(value: Any, plain: Any) -> None:
    assert jsonable(value) == plain


def a_cycle() -> list[Any]:
    cycle: list[Any] = []
    cycle.extend([cycle, cycle])
    return cycle


class Unprintable:
    def __str__(self) -> str:
        raise KeyError("no text")

    __repr__ = __str__


@pytest.mark.parametrize(
    "make",
    [a_cycle, Unprintable, lambda: nested(10_000), lambda: [10**5000, Unprintable()], lambda: HALF * 3, object],
    ids=["cycle", "unprintable", "deep", "huge and unprintable", "surrogates", "object"],
)
def test_what_is_no_json_still_arrives_as_text(make: Callable[[], Any]) -> None:
    result = Result.ok(make())
    assert json.loads(result.to_json_str().encode())["value"]
    result.to_text().encode()


def test_a_number_too_long_to_be_written_in_digits_is_written_in_hexadecimal() -> None:
    assert jsonable([10**5000]) == [hex(10**5000)]


def test_every_text_of_an_envelope_can_be_encoded() -> None:
    result = Result(
        success=False, message=HALF, instruction=HALF, error=HALF, error_type=HALF, exception=ValueError(HALF),
        warnings=(HALF,), next={HALF: HALF}, fields={"f": HALF},
    )  # fmt: skip
    result.to_json_str().encode()
    result.to_text().encode()


def test_raw_json_stands_where_the_value_would() -> None:
    assert Result(success=True, raw=b'{"a": [1, 2]}').to_json() == {"success": True, "value": {"a": [1, 2]}}
    assert Result(success=True, raw=b"{broken").to_json() == {"success": True, "value": "{broken"}
    assert Result(success=True, raw=b"[NaN]").to_json_str() == '{"success":true,"value":"[NaN]"}'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(json_values)
def test_json_passes_unchanged(value: Any) -> None:
    assert jsonable(value) == value


odd_leaves = st.floats() | st.binary(max_size=8) | st.text(st.characters(), max_size=8) | st.integers()


@given(
    st.recursive(odd_leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(odd_leaves, inner, max_size=3))
)
def test_whatever_comes_out_is_json_that_can_be_sent(value: Any) -> None:
    text = Result.ok(value).to_json_str()
    json.loads(text.encode(), parse_constant=pytest.fail)


def test_output_for_reading_stays_as_it_was_written() -> None:
    result = Result.ok(message="Done.", fields={"output": 'one\n\t"two"\n', "modified_files": ["a.py"]})
    assert result.to_text() == 'Done.\none\n\t"two"\n{"modified_files":["a.py"]}'
    assert Result.ok(fields={"output": {"a": 1}}).to_text() == '{"output":{"a":1}}'
