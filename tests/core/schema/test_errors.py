"""Argument errors: one short message, and a corrected call that has been tried."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, model_validator

from tests.support import quoted_names
from trysquare import Declarations, Result, ToolArguments, call_tool
from trysquare.core.errors import InvalidArguments
from trysquare.core.signature import Arguments
from trysquare.testing import call

tools = Declarations()


class Line(BaseModel):
    model_config = ConfigDict(extra="forbid")
    count: int
    unit: Literal["box", "pallet"] = "box"


class Order(ToolArguments):
    customer: str = Field(description="Who orders")
    speed: Literal["slow", "fast"] = "slow"
    lines: list[Line] = Field(default_factory=list[Line])
    tags: list[str] = Field(default_factory=list[str])
    limit: int | None = None
    price: int | list[int] = 1


class Destroy(ToolArguments):
    path: str
    confirm: Literal["DELETE_FOREVER"]


class Range(ToolArguments):
    low: int
    high: int

    @model_validator(mode="after")
    def ordered(self) -> Range:
        if self.low > self.high:
            raise ValueError("low must not be above high")
        return self


class Read(ToolArguments):
    action: Literal["read"]
    path: str


class Write(ToolArguments):
    action: Literal["write", "append"]
    path: str
    content: str


@tools.declare
async def order(args: Order) -> str:
    return args.customer


@tools.declare
async def destroy(args: Destroy) -> str:
    return args.path


@tools.declare
async def between(args: Range) -> int:
    return args.high - args.low


@tools.declare
async def file(args: Read | Write) -> str:
    return f"{args.action} {args.path}"


@tools.declare
async def add(first: int, second: int = 2) -> int:
    return first + second


async def failed(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    envelope = (await call(tools, name, arguments)).to_json()
    assert not envelope["success"]
    return {
        "code": envelope["error"]["code"],
        "names": quoted_names(envelope["error"]["message"]),
        "do": quoted_names(envelope["instruction"]),
        "arguments": envelope.get("next", {}).get("arguments"),
    }


async def test_a_misspelt_name_is_put_right() -> None:
    assert await failed("order", {"custmer": "Ada"}) == {
        "code": "VALIDATION_UNKNOWN_PARAM",
        "names": ["custmer", "customer"],
        "do": ["next"],
        "arguments": {"customer": "Ada"},
    }


async def test_a_name_that_means_nothing_is_left_out() -> None:
    assert await failed("add", {"first": 1, "zzz": 3}) == {
        "code": "VALIDATION_UNKNOWN_PARAM",
        "names": ["zzz", "first", "second"],
        "do": ["next"],
        "arguments": {"first": 1},
    }


async def test_a_missing_argument_is_left_to_fill_in() -> None:
    assert await failed("order", {}) == {
        "code": "VALIDATION_MISSING_PARAM",
        "names": ["customer"],
        "do": ["customer", "next"],
        "arguments": {"customer": "<string>"},
    }


async def test_a_choice_is_corrected_to_the_nearest() -> None:
    assert await failed("order", {"customer": "Ada", "speed": "Fas"}) == {
        "code": "VALIDATION_INVALID_PARAM",
        "names": ["speed"],
        "do": ["next"],
        "arguments": {"customer": "Ada", "speed": "fast"},
    }


async def test_values_of_the_wrong_type_are_converted_where_that_is_plain() -> None:
    assert await failed("order", {"customer": 7, "tags": "new"}) == {
        "code": "VALIDATION_INVALID_PARAM",
        "names": ["customer", "tags"],
        "do": ["next"],
        "arguments": {"customer": "7", "tags": ["new"]},
    }


async def test_places_deep_inside_are_named_and_mended() -> None:
    lines = [{"count": "many"}, {"coun": 3}, {"count": 1, "colour": "red"}]
    assert await failed("order", {"customer": "Ada", "lines": lines}) == {
        "code": "VALIDATION_UNKNOWN_PARAM",
        "names": ["lines[1].coun", "lines[1].count", "lines[2].colour", "count", "unit", "lines[0].count"],
        "do": ["lines[0].count", "next"],
        "arguments": {"customer": "Ada", "lines": [{"count": "<integer>"}, {"count": 3}, {"count": 1}]},
    }
    assert lines[1] == {"coun": 3}, "the caller's own values stay as they were"


async def test_a_union_is_told_once() -> None:
    assert await failed("order", {"customer": "Ada", "price": "cheap"}) == {
        "code": "VALIDATION_INVALID_PARAM",
        "names": ["price"],
        "do": ["price", "next"],
        "arguments": {"customer": "Ada", "price": "<integer | list of integer>"},
    }


@pytest.mark.parametrize(
    ("arguments", "expected", "got"),
    [
        ({"speed": "Fas"}, '"slow" | "fast"', "'Fas'"),
        ({"tags": "new"}, "list of string", "'new'"),
        ({"price": "cheap"}, "integer | list of integer", "'cheap'"),
        ({"lines": [{"count": "many"}]}, "integer", "'many'"),
    ],
)
async def test_the_expected_and_the_given_value_are_shown(arguments: dict[str, Any], expected: str, got: str) -> None:
    error = str((await call(tools, "order", {"customer": "Ada", **arguments})).error)
    assert expected in error
    assert got in error


async def test_a_word_of_consent_is_never_filled_in() -> None:
    for given_word in ({}, {"confirm": "DELETE_FOREVE"}, {"confirm": True}):
        answer = await failed("destroy", {"path": "/", **given_word})
        assert answer["do"] == ["confirm", "next"]
        assert answer["arguments"]["confirm"] != "DELETE_FOREVER"


async def test_a_rule_over_several_arguments_is_told_without_a_made_up_call() -> None:
    assert "low must not be above high" in str((await call(tools, "between", low=3, high=1)).error)
    assert await failed("between", {"low": 3, "high": 1}) == {
        "code": "VALIDATION_INVALID_PARAM",
        "names": [],
        "do": [],
        "arguments": None,
    }


async def test_an_action_is_corrected_and_its_own_arguments_are_told() -> None:
    assert (await failed("file", {"action": "reed", "path": "a"}))["arguments"] == {"action": "read", "path": "a"}
    assert await failed("file", {"action": "read", "path": "a", "content": "b"}) == {
        "code": "VALIDATION_UNKNOWN_PARAM",
        "names": ["content", "action", "path"],
        "do": ["next"],
        "arguments": {"action": "read", "path": "a"},
    }
    missing = await call(tools, "file", {"path": "a"})
    assert missing.code == "VALIDATION_MISSING_PARAM"
    assert '"read" | "write" | "append"' in str(missing.error)


@pytest.mark.parametrize("wrapper", ["args", "arguments", "parameters", "params", "input", "kwargs"])
async def test_arguments_one_level_too_deep_are_understood(wrapper: str) -> None:
    assert (await call(tools, "order", {wrapper: {"customer": "Ada"}})).value == "Ada"
    assert (await call(tools, "add", {wrapper: {"first": 1}})).value == 3
    assert (await call(tools, "file", {wrapper: {"action": "read", "path": "a"}})).value == "read a"


async def test_an_argument_that_is_called_like_a_wrapper_stays_an_argument() -> None:
    own = Declarations()

    @own.declare
    async def show(args: dict[str, int]) -> dict[str, int]:
        return args

    assert (await call(own, "show", {"args": {"args": 1}})).value == {"args": 1}


@pytest.mark.parametrize("raw", [[1], "text", 3, True])
async def test_arguments_that_are_no_object_are_refused(raw: Any) -> None:
    result = await call_tool(tools.toolset(), "add", raw)
    assert result.code == "VALIDATION_INVALID_REQUEST"
    assert type(raw).__name__ in str(result.error)


def nested(levels: int) -> list[Any]:
    deep: list[Any] = []
    for _ in range(levels):
        deep = [deep]
    return deep


@pytest.mark.parametrize(
    "arguments",
    [
        {"customer": "x" * 10_000_000, "speed": "slo"},
        {"customer": nested(10_000)},
        {"customer": "Ada", "lines": nested(10_000)},
        {"customer": 10**5000},
        {"k" * 1_000_000: 1},
        {"\ud800": 1, "customer": 3},
        {f"unknown_{number}": number for number in range(20_000)},
    ],
    ids=["long text", "deep", "deep list", "long number", "long name", "half a character", "many names"],
)
async def test_whatever_was_sent_the_answer_is_short(arguments: dict[str, Any]) -> None:
    result = await call(tools, "order", arguments)
    assert result.code in {"VALIDATION_INVALID_PARAM", "VALIDATION_UNKNOWN_PARAM"}
    assert len(result.to_json_str().encode()) < 3_000


async def test_a_large_value_is_named_and_not_sent_back() -> None:
    answer = await failed("order", {"customer": "x" * 5_000, "speed": "slo"})
    assert answer["do"] == ["customer", "next"]
    assert answer["arguments"] == {"customer": "<as you sent it>", "speed": "slow"}


scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=5) | st.just("fast")
names = st.sampled_from(
    ["customer", "custmer", "speed", "lines", "tags", "limit", "price", "count", "unit", "action", "path", "content",
     "low", "high", "first", "confirm", "args", ""]
) | st.text(max_size=4)  # fmt: skip
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3))
wrong_lines = st.lists(st.dictionaries(names, values, max_size=3) | values, max_size=3)
calls = st.dictionaries(names, values | wrong_lines, max_size=5)


@given(st.sampled_from(["order", "destroy", "between", "file", "add"]), calls)
def test_the_corrected_call_fits_or_the_instruction_names_what_is_open(name: str, arguments: dict[str, Any]) -> None:
    made = tools.toolset().find(name)
    assert made is not None
    error = refusal(made.arguments, name, arguments)
    if error is None:
        return
    Result.from_error(error).to_json_str().encode()
    assert error.message
    assert error.instruction
    if error.next is None:
        assert quoted_names(error.instruction) == []
    elif quoted_names(error.instruction) == ["next"]:
        made.arguments.parse(name, error.next["arguments"])
    else:
        assert quoted_names(error.instruction)


def refusal(checked: Arguments, name: str, arguments: dict[str, Any]) -> InvalidArguments | None:
    try:
        checked.parse(name, arguments)
    except InvalidArguments as error:
        return error
    return None
