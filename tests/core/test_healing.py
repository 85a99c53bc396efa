"""Argument errors that heal: one short message, and a corrected call that has been tried."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from pydantic import BaseModel, ConfigDict, Field, model_validator

from trysquare import Declarations, Result, ToolArguments
from trysquare.core.errors import InvalidArguments
from trysquare.core.schema import Arguments
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
        "said": envelope["error"]["message"],
        "do": envelope.get("instruction"),
        "arguments": envelope.get("next", {}).get("arguments"),
    }


async def test_a_misspelt_name_is_put_right() -> None:
    assert await failed("order", {"custmer": "Ada"}) == snapshot(
        {
            "code": "VALIDATION_UNKNOWN_PARAM",
            "said": "There is no argument `custmer`; `customer` is meant, it seems.",
            "do": "Send the corrected call in `next`.",
            "arguments": {"customer": "Ada"},
        }
    )


async def test_a_name_that_means_nothing_is_left_out() -> None:
    assert await failed("add", {"first": 1, "zzz": 3}) == snapshot(
        {
            "code": "VALIDATION_UNKNOWN_PARAM",
            "said": "There is no argument `zzz`; the arguments are `first`, `second`.",
            "do": "Send the corrected call in `next`.",
            "arguments": {"first": 1},
        }
    )


async def test_a_missing_argument_is_left_to_fill_in() -> None:
    assert await failed("order", {}) == snapshot(
        {
            "code": "VALIDATION_MISSING_PARAM",
            "said": "`customer` is missing (string, Who orders).",
            "do": "Fill in `customer`, then send the call in `next`.",
            "arguments": {"customer": "<string>"},
        }
    )


async def test_a_choice_is_corrected_to_the_nearest() -> None:
    assert await failed("order", {"customer": "Ada", "speed": "Fas"}) == snapshot(
        {
            "code": "VALIDATION_INVALID_PARAM",
            "said": '`speed` must be "slow" | "fast"; got \'Fas\'.',
            "do": "Send the corrected call in `next`.",
            "arguments": {"customer": "Ada", "speed": "fast"},
        }
    )


async def test_values_of_the_wrong_type_are_converted_where_that_is_plain() -> None:
    assert await failed("order", {"customer": 7, "tags": "new"}) == snapshot(
        {
            "code": "VALIDATION_INVALID_PARAM",
            "said": "`customer` must be string; got 7. `tags` must be list of string; got 'new'.",
            "do": "Send the corrected call in `next`.",
            "arguments": {"customer": "7", "tags": ["new"]},
        }
    )


async def test_places_deep_inside_are_named_and_mended() -> None:
    lines = [{"count": "many"}, {"coun": 3}, {"count": 1, "colour": "red"}]
    assert await failed("order", {"customer": "Ada", "lines": lines}) == snapshot(
        {
            "code": "VALIDATION_UNKNOWN_PARAM",
            "said": "There is no argument `lines[1].coun`; `lines[1].count` is meant, it seems. "
            "There is no argument `lines[2].colour`. `lines[0].count` must be integer; got 'many'.",
            "do": "Fill in `lines[0].count`, then send the call in `next`.",
            "arguments": {"customer": "Ada", "lines": [{"count": "<integer>"}, {"count": 3}, {"count": 1}]},
        }
    )
    assert lines[1] == {"coun": 3}, "the caller's own values stay as they were"


async def test_a_union_is_told_once() -> None:
    assert await failed("order", {"customer": "Ada", "price": "cheap"}) == snapshot(
        {
            "code": "VALIDATION_INVALID_PARAM",
            "said": "`price` must be integer | list of integer; got 'cheap'.",
            "do": "Fill in `price`, then send the call in `next`.",
            "arguments": {"customer": "Ada", "price": "<integer | list of integer>"},
        }
    )


async def test_a_word_of_consent_is_never_filled_in() -> None:
    for given_word in ({}, {"confirm": "DELETE_FOREVE"}, {"confirm": True}):
        answer = await failed("destroy", {"path": "/", **given_word})
        assert answer["do"] == "Fill in `confirm`, then send the call in `next`."
        assert answer["arguments"]["confirm"] != "DELETE_FOREVER"


async def test_a_rule_over_several_arguments_is_told_without_a_made_up_call() -> None:
    assert await failed("between", {"low": 3, "high": 1}) == snapshot(
        {
            "code": "VALIDATION_INVALID_PARAM",
            "said": "low must not be above high.",
            "do": "Correct the arguments and call again.",
            "arguments": None,
        }
    )


async def test_an_action_is_corrected_and_its_own_arguments_are_told() -> None:
    assert (await failed("file", {"action": "reed", "path": "a"}))["arguments"] == {"action": "read", "path": "a"}
    assert await failed("file", {"action": "read", "path": "a", "content": "b"}) == snapshot(
        {
            "code": "VALIDATION_UNKNOWN_PARAM",
            "said": "There is no argument `content`; the arguments are `action`, `path`.",
            "do": "Send the corrected call in `next`.",
            "arguments": {"action": "read", "path": "a"},
        }
    )
    assert (await failed("file", {"path": "a"}))["said"] == snapshot(
        '`action` is missing ("read" | "write" | "append", What to do).'
    )


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
    from trysquare import call_tool

    result = await call_tool(tools.toolset(), "add", raw)
    assert result.to_json()["error"] == {
        "code": "VALIDATION_INVALID_REQUEST",
        "message": f"Arguments must be a JSON object, not {type(raw).__name__}.",
    }


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
    assert answer["do"] == "Put `customer` back as you sent it, then send the call in `next`."
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
        assert error.instruction == "Correct the arguments and call again."
    elif error.instruction == "Send the corrected call in `next`.":
        made.arguments.parse(name, error.next["arguments"])
    else:
        assert error.instruction.startswith(("Fill in `", "Put `"))


def refusal(checked: Arguments, name: str, arguments: dict[str, Any]) -> InvalidArguments | None:
    try:
        checked.parse(name, arguments)
    except InvalidArguments as error:
        return error
    return None
