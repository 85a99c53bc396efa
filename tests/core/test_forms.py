"""Questions for a type: `context.ask(text, Model)`, in tests as in life."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, TypedDict

import mcp_types as types
import pytest
from pydantic import BaseModel, Field

from tests.server.clients import client_of
from trysquare import CallContext, QuestionDeclined, ToolError, Tools, tool
from trysquare.testing import ScriptedCaller, accept, call, cancel, decline, make_context


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Booking(BaseModel):
    name: str = Field(description="Who comes", min_length=2, pattern="^[A-Z]")
    seats: int = Field(default=1, ge=1, le=8)
    day: date
    colour: Colour = Colour.RED
    level: Level | None = None
    extras: list[Literal["wine", "cake"]] = []


@dataclass
class Size:
    width: float
    note: str | None


class Tags(TypedDict):
    tag: Literal["a", "b"]


async def asked(wanted: Any, *answers: Any) -> tuple[Any, ScriptedCaller]:
    """What a tool gets that asks for this."""
    caller = ScriptedCaller(list(answers))
    got: list[Any] = []

    async def ask(context: CallContext) -> None:
        got.append(await context.ask("What?", wanted))

    result = await call(tool(ask), "ask", context=make_context(caller=caller))
    assert result.success, result.error
    return got[0], caller


@pytest.mark.parametrize(
    ("wanted", "given", "value"),
    [
        (str, "x", "x"),
        (int, 3, 3),
        (float, 2, 2.0),
        (bool, True, True),
        (date, "2026-11-18", date(2026, 11, 18)),
        (Literal["a", "b"], "b", "b"),
        (Literal[1, 2], "2", 2),
        (Colour, "blue", Colour.BLUE),
        (Level, "2", Level.HIGH),
        (list[Level], ["1", "2"], [Level.LOW, Level.HIGH]),
        (["small", "large"], "large", "large"),
        (Annotated[int, Field(ge=1)], 5, 5),
    ],
)
async def test_one_value_is_asked_for_and_returned_as_its_type(wanted: Any, given: Any, value: Any) -> None:
    got, caller = await asked(wanted, accept(given))
    assert (got, type(got)) == (value, type(value))
    [field] = caller.questions[0].schema["properties"].values()
    assert field["type"] in ("string", "integer", "number", "boolean", "array")
    assert caller.questions[0].schema["required"] == ["value"]


async def test_a_model_is_a_flat_form_of_what_the_protocol_has() -> None:
    got, caller = await asked(Booking, accept(name="Ada", day="2026-01-02", level="2", extras=["cake"]))
    assert got == Booking(name="Ada", day=date(2026, 1, 2), level=Level.HIGH, extras=["cake"])
    assert caller.questions[0].schema == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Who comes", "minLength": 2},
            "seats": {"type": "integer", "default": 1, "maximum": 8, "minimum": 1},
            "day": {"type": "string", "format": "date"},
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "level": {"type": "string", "enum": ["1", "2"]},
            "extras": {"type": "array", "items": {"type": "string", "enum": ["wine", "cake"]}, "default": []},
        },
        "required": ["name", "day"],
    }


async def test_dataclasses_and_typed_dicts_are_forms() -> None:
    size, caller = await asked(Size, accept(width=2))
    assert size == Size(width=2.0, note=None)
    assert caller.questions[0].schema["required"] == ["width"]
    assert (await asked(Tags, accept(tag="a")))[0] == {"tag": "a"}


async def test_an_answer_that_does_not_fit_is_asked_for_again_with_the_reason() -> None:
    got, caller = await asked(Booking, accept(name="ada", day="2026-01-02"), accept(name="Ada", day="2026-01-02"))
    assert got.name == "Ada"
    assert [question.message for question in caller.questions] == [
        "What?", "What?\n\nname: String should match pattern '^[A-Z]'"
    ]  # fmt: skip


async def test_without_a_type_the_user_only_agrees() -> None:
    got, caller = await asked(None, accept())
    assert got is None
    assert caller.questions[0].schema == {"type": "object", "properties": {}}


@pytest.mark.parametrize(("answer", "action"), [(decline(), "decline"), (cancel(), "cancel")])
async def test_a_question_that_is_declined_or_closed_raises(answer: Any, action: str) -> None:
    seen: list[str] = []

    async def ask(context: CallContext) -> str:
        try:
            return await context.ask("Which?", str)
        except QuestionDeclined as declined:
            seen.append(declined.action)
            raise

    result = await call(tool(ask), "ask", human=answer)
    assert (result.code, seen) == ("CONSENT_REFUSED", [action])


class Nested(BaseModel):
    inner: Booking


@pytest.mark.parametrize(
    "wanted",
    [
        Nested,
        dict[str, int],
        list[str],
        int | str,
        [],
        object(),
        {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}},
        {"type": "array"},
    ],
)
async def test_what_no_client_can_show_is_refused_at_once(wanted: Any) -> None:
    caller = ScriptedCaller([accept("x")])

    async def ask(context: CallContext) -> None:
        with pytest.raises(ToolError, match="flat"):
            await context.ask("What?", wanted)

    assert (await call(tool(ask), "ask", context=make_context(caller=caller))).success
    assert caller.questions == []


tools = Tools()


@tools.tool
async def book(context: CallContext) -> str:
    """Book a table."""
    booking = await context.ask("Book what?", Booking)
    colour = await context.ask("Which colour?", Colour, key="colour")
    return f"{booking.name} {booking.seats} {booking.day} {colour.name}"


def person(*contents: dict[str, Any]) -> Callable[..., Any]:
    left = list(contents)

    async def answer(_context: object, params: Any) -> types.ElicitResult:
        assert params.requested_schema["type"] == "object"
        return types.ElicitResult(action="accept", content=left.pop(0))

    return answer


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_of_either_version_answers_with_what_fits(mode: str) -> None:
    wrong, right = {"name": "ada", "day": "2026-01-02"}, {"name": "Ada", "day": "2026-01-02", "seats": 3}
    callback = person(wrong, right, {"value": "blue"})
    async with client_of(tools.toolset(), mode, elicitation_callback=callback) as client:
        answered = await client.call_tool("book", {})
    assert not answered.is_error
    assert "Ada 3 2026-01-02 BLUE" in str(answered.content)
