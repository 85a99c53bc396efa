"""What tools return, as the SDK's client gets it: it holds structured content to the output schema that is listed."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

import pytest
from mcp_types import CallToolResult
from mcp_types import Tool as ListedTool
from pydantic import BaseModel, ConfigDict, Field, RootModel, WithJsonSchema, computed_field

from tests.server.clients import client_of, text_of
from tests.support import about
from trysquare import Client, Result, StaticToolset, Tools, tool

ERAS = ("legacy", "2026-07-28")
T = TypeVar("T")
NOON = datetime.datetime(2026, 1, 31, 12)


class Colour(enum.Enum):
    RED = "red"
    TWO = 2


class Level(enum.IntEnum):
    HIGH = 3


class Forecast(BaseModel):
    """Weather at one place."""

    place: str = Field(description="Where")
    rain: float | None = None
    at: datetime.datetime = NOON
    later: list[Forecast] = []
    wind_speed: int = Field(default=3, serialization_alias="windSpeed")

    @computed_field
    @property
    def is_dry(self) -> bool:
        return not self.rain


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    number: int = 1


class Wider(Closed):
    more: int = 2


class Box(BaseModel, Generic[T]):
    item: T


class Numbers(RootModel[list[int]]):
    pass


@dataclass
class Step:
    number: int
    note: str | None = None
    folder: PurePosixPath = field(default_factory=lambda: PurePosixPath("a/b"))
    inner: Step | None = None


class Point(TypedDict):
    x: int
    label: NotRequired[str]


class Pair(NamedTuple):
    left: int
    right: str | None = None


STEP = {"number": 1, "note": None, "folder": "a/b", "inner": None}
RAIN = {"place": "Ulm", "rain": None, "at": "2026-01-31T12:00:00", "later": [], "windSpeed": 3, "is_dry": True}
OBJECTS: tuple[tuple[Any, Any, Any], ...] = (
    (Forecast, Forecast(place="Ulm"), RAIN),
    (Forecast, Forecast(place="Ulm", later=[Forecast(place="Ulm")]), {**RAIN, "later": [RAIN]}),
    (Forecast, {"place": "Ulm"}, RAIN),
    (Closed, Wider(), {"number": 1, "more": 2}),
    (Box[int], Box(item=3), {"item": 3}),
    (Step, Step(number=1, inner=Step(number=1)), {**STEP, "inner": STEP}),
    (Point, {"x": 1}, {"x": 1}),
    (Point, {"x": 1, "label": "a"}, {"x": 1, "label": "a"}),
    (dict, {}, {}),
    (dict[str, Any], {"result": 1}, {"result": 1}),
    (Box[Any], Box[Any](item={"result": [1]}), {"item": {"result": [1]}}),
    (dict[str, Colour], {"a": Colour.RED, "b": Colour.TWO}, {"a": "red", "b": 2}),
    (dict[int, str], {1: "one"}, {"1": "one"}),
    (Mapping[str, Point], {"a": {"x": 1}}, {"a": {"x": 1}}),
    (Result[Forecast], Result.ok(Forecast(place="Ulm")), RAIN),
)
WRAPPED: tuple[tuple[Any, Any, Any], ...] = (
    (str, "", ""),
    (int, 3, 3),
    (int, True, 1),
    (float, 1, 1),
    (bool, False, False),
    (list, [1, "a"], [1, "a"]),
    (list[Pair], [Pair(1, "a")], [[1, "a"]]),
    (Pair, Pair(1, "a"), [1, "a"]),
    (Pair, Pair(1), [1, None]),
    (Numbers, Numbers([1]), [1]),
    (tuple[int, str], (1, "a"), [1, "a"]),
    (tuple[int, ...], (1, 2), [1, 2]),
    (Sequence[Step], (Step(number=1),), [STEP]),
    (set[int], {1}, [1]),
    (frozenset[str], frozenset({"a"}), ["a"]),
    (int | None, None, None),
    (int | None, 2, 2),
    (Forecast | None, None, None),
    (dict[str, int] | None, {"result": 1}, {"result": 1}),
    (Forecast | Point, {"x": 1}, {"x": 1}),
    (int | str | list[int], [1], [1]),
    (Literal["a", "b"], "b", "b"),
    (Literal["a", 1], 1, 1),
    (Colour, Colour.RED, "red"),
    (Level, Level.HIGH, 3),
    (datetime.datetime, NOON, "2026-01-31T12:00:00"),
    (datetime.date, NOON.date(), "2026-01-31"),
    (datetime.timedelta, datetime.timedelta(hours=1), "PT1H"),
    (decimal.Decimal, decimal.Decimal("1.10"), "1.10"),
    (uuid.UUID, uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (PurePosixPath, PurePosixPath("/a"), "/a"),
    (Annotated[int, Field(ge=10)], 3, 3),
    (Result[int], Result.ok(3), 3),
    (Result[int | None], Result.ok(), None),
)
UNTYPED: tuple[tuple[Any, Any, Any], ...] = (
    (Any, [1], {"result": [1]}),
    (object, {"a": 1}, {"a": 1}),
    (Result, Result.ok({"a": 1}), {"a": 1}),
    (Any, "text", None),
    (None, None, None),
    (bytes, b"text", None),
    (Result[None], Result.ok(), None),
)


def returning(annotation: Any, value: Any) -> Callable[[], Any]:
    def look() -> Any:
        """Return it."""
        return value

    look.__annotations__ = {"return": annotation}
    return look


async def called(function: Callable[..., Any], era: str, **options: Any) -> tuple[ListedTool, CallToolResult]:
    made = tool(function, name="look", **options)
    async with client_of(StaticToolset([made]), era) as client:
        [listed] = (await client.list_tools()).tools
        return listed, await client.call_tool("look", {})


def named(cases: tuple[tuple[Any, Any, Any], ...]) -> list[Any]:
    return [pytest.param(*case, id=f"{number}-{case[0]}") for number, case in enumerate(cases)]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("annotation", "value", "structured"), named(OBJECTS))
async def test_what_is_an_object_is_the_structured_content(
    annotation: Any, value: Any, structured: Any, era: str
) -> None:
    listed, result = await called(returning(annotation, value), era)
    assert (listed.output_schema or {})["type"] == "object"
    assert not result.is_error
    assert result.structured_content == json.loads(text_of(result)) == structured


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("annotation", "value", "structured"), named(WRAPPED))
async def test_what_is_no_object_stands_under_result(annotation: Any, value: Any, structured: Any, era: str) -> None:
    listed, result = await called(returning(annotation, value), era)
    schema = listed.output_schema or {}
    assert (list(schema["properties"]), schema["required"]) == (["result"], ["result"])
    assert not result.is_error
    assert result.structured_content == {"result": structured}
    assert text_of(result) == (
        structured if isinstance(structured, str) else json.dumps(structured, separators=(",", ":"))
    )


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("annotation", "value", "structured"), named(UNTYPED))
async def test_where_the_annotation_says_nothing_no_schema_is_listed(
    annotation: Any, value: Any, structured: Any, era: str
) -> None:
    listed, result = await called(returning(annotation, value), era)
    assert (listed.output_schema, result.structured_content, result.is_error) == (None, structured, False)


async def numbers_in_turn() -> AsyncIterator[int]:
    """Yield."""
    for number in range(3):
        yield number


def steps_in_turn() -> Iterator[Step]:
    """Yield."""
    yield Step(number=1)


@pytest.mark.parametrize("era", ERAS)
async def test_what_is_yielded_arrives_whole_and_typed(era: str) -> None:
    for function, structured in ((numbers_in_turn, [0, 1, 2]), (steps_in_turn, [STEP])):
        listed, result = await called(function, era)
        assert (listed.output_schema or {})["properties"]["result"]["items"]
        assert result.structured_content == {"result": structured}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("annotation", "value", "shown"),
    [
        (int, "three", "three"),
        (str, None, "no value"),
        (Forecast, {"rain": 1}, '{"rain":1}'),
        (dict[str, int], {"a": "b"}, '{"a":"b"}'),
        (float, float("nan"), "NaN"),
        (list[int], None, "no value"),
    ],
)
async def test_a_value_of_another_type_is_a_failure_that_has_the_value(
    annotation: Any, value: Any, shown: str, era: str
) -> None:
    _, result = await called(returning(annotation, value), era)
    assert (result.is_error, result.structured_content) == (True, None)
    assert shown in text_of(result)
    assert about(result)["error_type"] == "invalid_result"


@pytest.mark.parametrize("era", ERAS)
async def test_guidance_stands_in_the_text_and_in_meta_beside_a_typed_value(era: str) -> None:
    following: dict[str, Any] = {"tool": "look", "arguments": {}}
    answer = Result.ok(3, instruction="Show it.", next=following, warnings=("slow",), fields={"unit": "m"})
    _, result = await called(returning(Result[int], answer), era)
    assert result.structured_content == {"result": 3}
    guidance = {"instruction": "Show it.", "next": following, "warnings": ["slow"]}
    assert about(result) == {**guidance, "unit": "m"}
    lines = ["3", '{"unit":"m"}', "Warning: slow", "Instruction: Show it."]
    assert text_of(result).split("\n") == [*lines, 'Next: {"tool":"look","arguments":{}}']
    _, untyped = await called(returning(Result, answer), era)
    assert untyped.structured_content == {"result": 3, "unit": "m", **guidance}


@pytest.mark.parametrize("era", ERAS)
async def test_guidance_beside_an_empty_value_fits_the_schema(era: str) -> None:
    answer = Result.ok(dict[str, int](), instruction="Add one.")
    _, result = await called(returning(Result[dict[str, int]], answer), era)
    assert (result.structured_content, about(result)) == ({}, {"instruction": "Add one."})


@pytest.mark.parametrize("era", ERAS)
async def test_a_failure_of_a_typed_tool_has_its_text_and_no_structured_content(era: str) -> None:
    failure: Result[Any] = Result.failure("No rain.", instruction="Wait.")
    _, result = await called(returning(Result[Forecast], failure), era)
    assert (result.is_error, result.structured_content) == (True, None)
    assert text_of(result) == "Error TOOL_FAILED: No rain.\nInstruction: Wait."


async def test_the_schema_is_compact_and_can_be_left_out() -> None:
    listed, _ = await called(returning(Forecast, Forecast(place="Ulm")), "legacy")
    schema = json.dumps(listed.output_schema)
    assert not any(word in schema for word in ("title", "default", "Weather"))
    assert '"description": "Where"' in schema
    listed, result = await called(returning(int, 3), "legacy", output_schema=False)
    assert (listed.output_schema, result.structured_content) == (None, {"result": 3})


async def test_an_author_may_write_the_output_schema() -> None:
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
    tools = Tools()

    @tools.tool
    def right() -> Annotated[dict[str, Any], WithJsonSchema(schema)]:
        return {"count": 1, "more": True}

    @tools.tool
    def wrong() -> Annotated[dict[str, Any], WithJsonSchema(schema)]:
        return {"count": "many"}

    async with Client(tools) as client:
        assert {each.name: each.output_schema for each in await client.list_tools()}["right"] == schema
        assert (await client.call_tool("right")).data == {"count": 1, "more": True}
        assert (await client.call_tool("wrong", raise_on_error=False)).is_error


async def test_text_and_structured_content_may_differ() -> None:
    tools = Tools()

    @tools.tool(output_schema=False)
    def settings() -> Result[str]:
        return Result.ok("debug: true\n", structured={"debug": True})

    @tools.tool
    def typed() -> Result[int]:
        return Result.ok(3, structured={"debug": True})

    async with Client(tools) as client:
        shown = await client.call_tool("settings")
        assert (shown.text, shown.data) == ("debug: true\n", {"debug": True})
        assert (await client.call_tool("typed", raise_on_error=False)).is_error
